// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Lost connections, silent links, expired sessions and removed nodes, while locks are held and awaited.
#include "fixture.hpp"
#include "one_server.hpp"
#include "support/driver.hpp"
#include "zookeeper/layout/key_encoding.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {

BOOST_FIXTURE_TEST_SUITE(zookeeper_faults, one_server)

BOOST_AUTO_TEST_CASE(lock_and_queue_position_survive_a_lost_connection)
{
    auto& holder = add_linked(10s);
    auto& waiter = add_linked(10s);
    auto held = run(holder.acquire("k"));
    auto first = queue(waiter);
    auto last = queue(add());
    const auto queued = nodes();
    link.refuse(true);
    until([&] { return events->suspensions == 2; });
    BOOST_TEST(events->risks == 1);
    link.refuse(false);
    until([&] { return events->reconnections == 2; });
    run(held.extend(20s));
    BOOST_TEST(held.held());
    BOOST_TEST((nodes() == queued));
    run(held.release(on_failure::raise));
    auto next = first.get(io);
    BOOST_TEST(!last.done());
    run(next.release(on_failure::raise));
    run(last.get(io).release(on_failure::raise));
    check_end();
}

/// A watch is set again at every reconnect, while the driver still has the old one. The server reports that the
/// predecessor still exists, so the waiters do not have to check.
BOOST_AUTO_TEST_CASE(waiters_are_woken_after_many_reconnects_and_leave_nothing_behind)
{
    auto held = run(add().acquire("k"));
    auto& waiter = add_linked(10s);
    std::vector<running<lock>> waiting;
    for (int i = 0; i < 20; ++i)
        waiting.push_back(
            start(io, waiter.acquire("k", {.mode = lock_mode::shared, .retry = retry_policy::fixed(1h)})));
    until([&] { return waiter.stats().busy == 20 && watches_at(server->port()) == 1; });
    for (int times = 1; times <= 5; ++times) {
        link.refuse(true);
        until([&] { return events->suspensions == times; });
        link.refuse(false);
        until([&] { return events->reconnections == times; });
        // The server answers this request after it has set the watches.
        run(waiter.is_locked("k"));
    }
    BOOST_TEST(waiter.stats().busy == 20U);
    run(held.release(on_failure::raise));
    for (auto& each : waiting)
        run(each.get(io).release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(all_waiters_are_granted_after_their_sessions_expire)
{
    std::vector<running<void>> waiting;
    const auto held = run(add().acquire("k"));
    seen.on_grant(held);
    auto loss_event = start(io, held.lost());
    for (int i = 0; i < 10; ++i) {
        auto& by = add();
        for (int j = 0; j < 10; ++j)
            waiting.push_back(start(io, acquire_and_release(by, seen)));
    }
    until([&] { return nodes().size() == 11; });
    for (const auto each : sessions_of(server->port(), chroot()))
        end_session(server->port(), each);
    BOOST_TEST((loss_event.get(io) == lost_reason::session));
    until([&] { return seen.grants == 101; });
    for (auto& each : waiting)
        each.get(io);
    check_end();
}

BOOST_AUTO_TEST_CASE(waiter_enqueues_again_after_its_session_expired_without_other_events)
{
    auto held = run(add().acquire("k"));
    const auto of_holder = sessions_of(server->port(), chroot());
    auto waiter = queue_and_watch(add());
    const auto queued = nodes();
    for (const auto each : sessions_of(server->port(), chroot())) {
        if (each != of_holder.at(0))
            end_session(server->port(), each);
    }
    until([&] { return nodes().size() == 2 && nodes() != queued; });
    auto last = queue(add());
    run(held.release(on_failure::raise));
    auto next = waiter.get(io);
    BOOST_TEST(!last.done());
    run(next.release(on_failure::raise));
    run(last.get(io).release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(repeated_removal_of_the_folder_does_not_prevent_grants)
{
    bool enough = false;
    auto working = start(io, acquire_and_release_until(add(), seen, enough));
    // The replies may arrive until the session has been closed, so the counter outlives the client.
    int removed = 0;
    client administrator(server->port(), 6s, {.chroot = chroot()});
    administrator.connect();
    const auto folder = bucket_of("k") + "/k";
    // A server with a slow disk grants fewer locks.
    const auto long_enough = lease_clock::now() + 20s;
    // Some of the removals happen between the creation of the folder and the creation of the first node in it.
    until([&] {
        administrator.zk_session->get_requests().remove(
            administrator.path(folder), [&](const reply& got) { removed += got.ok() ? 1 : 0; });
        run_ready(*administrator.io);
        return seen.grants > (lease_clock::now() < long_enough ? 500 : 10);
    });
    enough = true;
    working.get(io);
    BOOST_TEST(removed > 0);
    check_end();
}

BOOST_AUTO_TEST_CASE(failure_of_one_request_of_a_batch_does_not_fail_the_others)
{
    const auto all = add();
    std::map<std::string, std::uint64_t> fences;
    for (int i = 0; i < 40; ++i)
        fences["k" + std::to_string(i)] = 0;
    // After the first round all folders exist, and some are removed.
    for (int round = 0; round < 3; ++round) {
        std::vector<running<lock>> taken;
        for (const auto& [key, fence] : fences)
            taken.push_back(start(io, all.acquire(key)));
        for (auto& each : taken) {
            auto held = each.get(io);
            BOOST_TEST(held.fence() > std::exchange(fences[std::string(held.key())], held.fence()));
            BOOST_TEST(run(held.is_locked()));
            run(held.release(on_failure::raise));
        }
        // A new client in each round: its event loop does not run while the locks are taken, which may last longer than
        // its session if the server is slow.
        client administrator(server->port(), 6s, {.chroot = chroot()});
        administrator.connect();
        for (const auto* const key : {"k3", "k11", "k12", "k30"})
            BOOST_TEST(administrator.remove(bucket_of(key) + '/' + key).ok());
    }
    // No caller was notified that its attempt had failed.
    BOOST_TEST(all.stats().attempts == 3 * fences.size());
    check_end();
}

BOOST_AUTO_TEST_CASE(removal_of_a_predecessors_node_grants_nothing_while_the_lock_is_held)
{
    auto held = run(add().acquire("k"));
    auto first = queue_and_watch(add());
    run(held.extend(20s));
    // The waiter watches its predecessor again.
    until([&] { return watches_at(server->port()) == 1; });
    const auto before = nodes();
    auto second = queue_and_watch(add());
    auto third = queue_and_watch(add());
    client administrator(server->port(), 6s, {.chroot = chroot()});
    administrator.connect();
    for (const auto& each : nodes()) {
        if (std::ranges::find(before, each) == before.end()) {
            BOOST_TEST(administrator.remove(each.substr(chroot().size() + 1)).ok());
            break;
        }
    }
    run(held.extend(20s));
    for (const auto* each : {&first, &second, &third})
        BOOST_TEST(!each->done());
    run(held.release(on_failure::raise));
    auto next = first.get(io);
    BOOST_TEST(!second.done());
    BOOST_TEST(!third.done());
    run(next.release(on_failure::raise));
    // The one of the two whose node was removed is behind the other now.
    until([&] { return second.done() || third.done(); });
    auto& last = second.done() ? third : second;
    next = (second.done() ? second : third).get(io);
    BOOST_TEST(!last.done());
    run(next.release(on_failure::raise));
    run(last.get(io).release(on_failure::raise));
    check_end();
}

/// During the disconnection, the predecessor's node and the waiter's own node are removed.
BOOST_AUTO_TEST_CASE(waiter_checks_its_own_node_after_a_reconnect)
{
    auto held = run(add().acquire("k"));
    auto& cut_off = add_linked(20s);
    auto waiter = queue_and_watch(cut_off);
    link.refuse(true);
    until([&] { return events->suspensions == 1; });
    run(held.release(on_failure::raise));
    auto& other = add();
    BOOST_TEST(run(other.break_lock("k")).size() == 1U);
    auto taken = run(other.acquire("k"));
    link.refuse(false);
    until([&] { return events->reconnections == 1; });
    // These requests are answered after all requests that the reconnection has caused.
    for (int i = 0; i < 3; ++i)
        run(cut_off.is_locked("k"));
    BOOST_TEST(!waiter.done());
    run(taken.release(on_failure::raise));
    run(waiter.get(io).release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(context_runs_out_of_work_soon_after_an_unanswered_shutdown)
{
    const locker by(make_adapter(options(10s, zookeeper_url(link.port()))), {.operation_timeout = 500ms});
    run(run(by.acquire("k")).release(on_failure::raise));
    link.silence(true);
    run(by.shutdown(300ms));
    io.restart();
    io.run_for(6s);
    BOOST_TEST(io.stopped());
    link.silence(false);
    check_end();
}

/// All requests of a lost connection are completed in one handler.
BOOST_AUTO_TEST_CASE(number_of_requests_in_flight_is_limited)
{
    constexpr std::size_t count = 3000;
    constexpr std::size_t max_in_flight = 1024;
    auto limited = options(10s, zookeeper_url(link.port()));
    limited.operation_timeout = 60s;
    const auto backend = make_adapter(limited);
    const auto by = add(backend);
    run(run(by.acquire("k")).release(on_failure::raise));

    link.silence(true);
    std::size_t unanswered = 0, granted = 0;
    std::vector<claim_ptr> claims;
    for (std::size_t i = 0; i < count; ++i) {
        claims.push_back(driver::exclusive("k" + std::to_string(i)));
        claims.back()->set_operation_start(lease_clock::now());
        backend->start_create(claims.back(), [&](create_outcome outcome) {
            unanswered += outcome.error && outcome.error->code == errc::outcome_unknown ? 1 : 0;
            granted += outcome.status == create_status::granted ? 1 : 0;
        });
    }
    io.restart();
    io.run_for(300ms);
    link.refuse(true);
    until([&] { return unanswered > 0; });
    io.restart();
    io.run_for(100ms);
    BOOST_TEST(unanswered <= max_in_flight);

    // The requests leave nothing at the server.
    link.silence(false);
    link.refuse(false);
    until([&] { return unanswered + granted == count; });
    std::size_t released = 0;
    for (const auto& each : claims)
        backend->start_release(each, release_guarantee::settled, [&](release_outcome) { ++released; });
    until([&] { return released == count; });
    check_end();
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(zookeeper_watches, one_server)

/// The lock is released between the list of the queue and the request that sets the watch. The reply to this request
/// shows only the current nodes, or that the predecessor's node does not exist.
BOOST_AUTO_TEST_CASE(waiter_checks_again_once_its_watch_is_set)
{
    const acquire_options exclusive{.retry = retry_policy::fixed(1h)};
    const acquire_options alone{.mode = lock_mode::shared, .max_holders = 1, .retry = retry_policy::fixed(1h)};
    auto& by = add_linked(10s);
    for (const auto& options : {exclusive, alone}) {
        auto held = run(add().acquire("k", options));
        // The client knows then that the folder has other nodes, and requests the list together with the creation of
        // the node.
        for (int times = 0; times < 2; ++times)
            BOOST_TEST(!run(by.try_acquire("k", options)));
        const int before = link.cuts();
        link.cut_at_bytes("/k/", loss::delayed_reply);
        auto waiter = start(io, by.acquire("k", options));
        until([&] { return link.cuts() > before && nodes().size() == 2; });
        BOOST_TEST(run(add().is_locked("k")));
        run(held.release(on_failure::raise));
        link.deliver_replies();
        run(waiter.get(io).release(on_failure::raise));
    }
    check_end();
}

BOOST_AUTO_TEST_CASE(watch_whose_request_was_lost_is_set_after_the_reconnect)
{
    auto held = run(add().acquire("k"));
    const auto predecessor = nodes().front();
    link.cut_at_bytes(predecessor.substr(predecessor.rfind('/')), loss::request);
    auto waiter = queue_and_watch(add_linked(10s));
    BOOST_TEST(link.cuts() == 1);
    run(held.release(on_failure::raise));
    run(waiter.get(io).release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
