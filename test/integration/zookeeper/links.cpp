// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "one_server.hpp"

#include <boost/test/unit_test.hpp>

namespace colock::testing {

BOOST_FIXTURE_TEST_SUITE(zookeeper_links, one_server)

namespace {

/// Starts an acquire, and loses the reply to the creation of its node and all later data.
running<lock> acquire_with_lost_reply(one_server& env, locker& by)
{
    env.run(one_server::acquire_and_release(by, env.seen));
    env.link.cut_at_bytes("/k", loss::delayed_reply);
    auto waiter = start(env.io, by.acquire("k"));
    env.until([&] { return env.link.cuts() == 1 && env.nodes().size() == 1; });
    env.link.silence(true);
    return waiter;
}

} // namespace

BOOST_AUTO_TEST_CASE(node_with_a_lost_creation_reply_is_found_after_a_silent_link)
{
    auto waiter = acquire_with_lost_reply(*this, add_linked(12s));
    const auto made = nodes();
    until([&] { return events->suspensions == 1; });
    link.silence(false);
    auto held = waiter.get(io);
    seen.on_grant(held);
    BOOST_TEST((nodes() == made));
    run(held.release(on_failure::raise));
    seen.on_release(held);
    check_end();
}

BOOST_AUTO_TEST_CASE(node_with_a_lost_creation_reply_ends_with_its_session)
{
    auto waiter = acquire_with_lost_reply(*this, add_linked(2s));
    const auto made = nodes();
    until([&] { return nodes().empty(); });
    link.silence(false);
    auto held = waiter.get(io);
    seen.on_grant(held);
    BOOST_TEST((nodes() != made));
    run(held.release(on_failure::raise));
    seen.on_release(held);
    check_end();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
