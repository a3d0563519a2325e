// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "one_server.hpp"
#include "support/toxiproxy.hpp"
#include "support/toxiproxy_faults.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>

namespace colock::testing {
namespace {

/// A locker holds a lock through a link that fails, and another locker waits for it on a link that works.
struct failing_link : one_server
{
    template <class Check>
    void for_each_fault(std::chrono::milliseconds session_timeout, Check check)
    {
        for (const auto& each : toxiproxy_faults) {
            BOOST_TEST_CONTEXT(each.name)
            {
                toxiproxy between(server->port());
                auto& holder = add(session_timeout, zookeeper_url(between.port()));
                auto held = run(holder.acquire("k"));
                seen.on_grant(held);
                auto waiter = queue(add());
                const auto suspended = events->suspensions;
                each.set(between, true);
                check(held, waiter, [&] { return events->suspensions > suspended; });
                each.set(between, false);
                if (held.held()) {
                    run(held.extend(20s));
                    run(held.release(on_failure::raise));
                }
                seen.on_release(held);
                auto next = waiter.get(io);
                seen.on_grant(next);
                run(next.release(on_failure::raise));
                seen.on_release(next);
                run(acquire_and_release(holder, seen));
            }
        }
        check_end();
    }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(zookeeper_links, failing_link)

BOOST_AUTO_TEST_CASE(a_lock_outlives_a_fault_that_is_shorter_than_its_session)
{
    for_each_fault(12s, [&](const lock& held, const running<lock>& waiter, const auto& is_suspended) {
        until(is_suspended);
        BOOST_TEST(held.held());
        BOOST_TEST(!waiter.done());
    });
}

BOOST_AUTO_TEST_CASE(a_lock_is_lost_by_a_fault_that_is_longer_than_its_session)
{
    for_each_fault(2s, [&](const lock& held, const running<lock>& waiter, const auto&) {
        auto loss_event = start(io, held.lost());
        BOOST_TEST((loss_event.get(io) == lost_reason::session));
        BOOST_TEST(!waiter.done());
        // The fault lasts until the server has ended the session.
        until([&] { return waiter.done(); });
    });
}

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
