// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "one_server.hpp"
#include "support/link_faults.hpp"
#include "support/proxy.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>

namespace colock::testing {
namespace {

/// Somebody holds through a link that fails what another waits for whose link is well.
struct failing_link : one_server
{
    template <class Check>
    void for_each_fault(std::chrono::milliseconds session_timeout, Check check)
    {
        for (const auto& each : link_faults) {
            BOOST_TEST_CONTEXT(each.name)
            {
                proxy between(server->port());
                auto& holds = add(session_timeout, zookeeper_url(between.port()));
                auto held = run(holds.acquire("k"));
                seen.granted(held);
                auto waits = queue(add());
                const auto suspended = told->suspensions;
                each.set(between, true);
                check(held, waits, [&] { return told->suspensions > suspended; });
                each.set(between, false);
                if (held.held()) {
                    run(held.extend(20s));
                    run(held.release(on_failure::raise));
                }
                seen.left(held);
                auto next = waits.get(io);
                seen.granted(next);
                run(next.release(on_failure::raise));
                seen.left(next);
                run(pass(holds, seen));
            }
        }
        check_end();
    }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(zookeeper_links, failing_link)

BOOST_AUTO_TEST_CASE(a_lock_outlives_a_fault_that_is_shorter_than_its_session)
{
    for_each_fault(12s, [&](const lock& held, const running<lock>& waits, const auto& is_suspended) {
        until(is_suspended);
        BOOST_TEST(held.held());
        BOOST_TEST(!waits.done());
    });
}

BOOST_AUTO_TEST_CASE(a_lock_is_lost_by_a_fault_that_is_longer_than_its_session)
{
    for_each_fault(2s, [&](const lock& held, const running<lock>& waits, const auto&) {
        auto hears = start(io, held.lost());
        BOOST_TEST((hears.get(io) == lost_reason::session));
        BOOST_TEST(!waits.done());
        // Until the server has counted it out, for whom the fault lasts as long.
        until([&] { return waits.done(); });
    });
}

namespace {

/// The reply to the making of a node, and all that follows, is not heard.
running<lock> acquire_unheard(one_server& on, locker& by)
{
    on.run(one_server::pass(by, on.seen));
    on.link.cut_at_bytes("/k", loss::time);
    auto waits = start(on.io, by.acquire("k"));
    on.until([&] { return on.link.cuts() == 1 && on.nodes().size() == 1; });
    on.link.silence(true);
    return waits;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_node_whose_making_was_not_heard_of_is_found_after_a_black_hole)
{
    auto waits = acquire_unheard(*this, add_linked(12s));
    const auto made = nodes();
    until([&] { return told->suspensions == 1; });
    link.silence(false);
    auto held = waits.get(io);
    seen.granted(held);
    BOOST_TEST((nodes() == made));
    run(held.release(on_failure::raise));
    seen.left(held);
    check_end();
}

BOOST_AUTO_TEST_CASE(a_node_whose_making_was_not_heard_of_is_over_with_its_session)
{
    auto waits = acquire_unheard(*this, add_linked(2s));
    const auto made = nodes();
    until([&] { return nodes().empty(); });
    link.silence(false);
    auto held = waits.get(io);
    seen.granted(held);
    BOOST_TEST((nodes() != made));
    run(held.release(on_failure::raise));
    seen.left(held);
    check_end();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
