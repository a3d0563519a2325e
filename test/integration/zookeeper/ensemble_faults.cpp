// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "ensemble.hpp"
#include "locker_fixture.hpp"

#include <boost/test/unit_test.hpp>

namespace colock::testing {
namespace {

struct ensemble_fixture : locker_fixture
{
    ensemble_fixture() : ensemble_fixture(shared_ensemble()) {}
    explicit ensemble_fixture(zookeeper_ensemble& all)
        : locker_fixture(
              all.url(), [&all] { return all[all.leader()].port(); },
              "/" + boost::unit_test::framework::current_test_case().p_name.get()),
          servers(all)
    {
    }

    [[nodiscard]] std::string url_of(std::size_t number) const { return zookeeper_url(servers[number].port()); }
    /// Starts acquires that wait in `lockers` lockers, `of_each` in each.
    std::vector<running<void>> start_waiters(std::size_t lockers, std::size_t of_each)
    {
        std::vector<running<void>> waiting;
        const auto before = nodes().size();
        for (std::size_t i = 0; i < lockers; ++i) {
            auto& by = add(20s);
            for (std::size_t j = 0; j < of_each; ++j)
                waiting.push_back(start(io, acquire_and_release(by, seen)));
        }
        until([&] { return nodes().size() == before + lockers; });
        return waiting;
    }
    void finish_all(std::vector<running<void>>& waiting)
    {
        until([&] { return std::ranges::all_of(waiting, [](const auto& each) { return each.done(); }); });
        for (auto& each : waiting)
            each.get(io);
    }
    /// A locker at server `number` holds a lock, and a locker at another server waits for it. After the server is cut
    /// off, the holder is notified of the loss before the waiter is granted the lock.
    void check_cut_off(std::size_t number)
    {
        auto& near = add(2s, url_of(number));
        auto& far = add(10s, url_of((number + 1) % servers.size));
        auto held = run(near.acquire("k"));
        seen.on_grant(held);
        auto loss_event = start(io, held.lost());
        auto waiter = queue(far);
        // This write is answered shortly before the cut. Even so, the lease must end before the session.
        run(held.extend(20s));
        servers.cut_off(number);
        auto next = waiter.get(io);
        seen.on_grant(next);
        BOOST_TEST((loss_event.get(io) == lost_reason::session));
        servers.cut_off(number, false);
        seen.on_release(held);
        run(next.release(on_failure::raise));
        seen.on_release(next);
        // The former holder continues in another session.
        run(acquire_and_release(near, seen));
        check_end();
    }

    zookeeper_ensemble& servers;
    grant_checker seen;
};

struct quick_fixture : ensemble_fixture
{
    quick_fixture() : ensemble_fixture(quick_ensemble()) {}
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(zookeeper_ensemble_faults, ensemble_fixture)

BOOST_AUTO_TEST_CASE(waiters_are_granted_after_the_leader_dies)
{
    auto held = run(add(20s).acquire("k"));
    auto waiting = start_waiters(20, 5);
    const auto dead = servers.leader();
    servers[dead].kill();
    until([&] { return servers.leader() != dead; });
    const auto answering = lease_clock::now();
    BOOST_TEST(held.held());
    // The release may have been sent to a server that then closed the connection. It is settled in the background.
    auto released = start(io, held.release());
    until([&] { return seen.grants > 0; });
    // Waiters are granted at once, not after a part of the session timeout.
    BOOST_TEST((lease_clock::now() - answering < 20s / 8.0));
    released.get(io);
    finish_all(waiting);
    BOOST_TEST(seen.grants == 100);
    check_end();
}

BOOST_AUTO_TEST_CASE(locks_are_granted_while_each_server_dies_in_turn)
{
    std::vector<running<void>> working;
    bool enough = false;
    for (int i = 0; i < 4; ++i)
        working.push_back(start(io, acquire_and_release_until(add(20s), seen, enough)));
    for (std::size_t i = 0; i < servers.size; ++i) {
        const auto wait_for_grants = [&] { until([&, before = seen.grants] { return seen.grants > before + 20; }); };
        wait_for_grants();
        servers[i].kill();
        wait_for_grants();
        servers[i].start();
    }
    enough = true;
    finish_all(working);
    check_end();
}

BOOST_AUTO_TEST_CASE(all_servers_die_and_come_back_within_the_session)
{
    auto held = run(add(30s).acquire("k"));
    auto waiting = start_waiters(3, 2);
    for (std::size_t i = 0; i < servers.size; ++i)
        servers[i].kill();
    servers.restore();
    BOOST_TEST(held.held());
    BOOST_TEST(seen.grants == 0);
    run(held.release());
    finish_all(waiting);
    check_end();
}

BOOST_AUTO_TEST_CASE(all_servers_die_and_come_back_after_the_session)
{
    const auto held = run(add(2s).acquire("k"));
    seen.on_grant(held);
    auto loss_event = start(io, held.lost());
    auto waiting = start_waiters(3, 2);
    for (std::size_t i = 0; i < servers.size; ++i)
        servers[i].kill();
    BOOST_TEST((loss_event.get(io) == lost_reason::session));
    servers.restore();
    // The lock was not released. Its node is removed when the server ends the session, or by the former holder after it
    // has resumed the session.
    finish_all(waiting);
    check_end();
}

BOOST_AUTO_TEST_CASE(holder_at_a_follower_cut_off_from_the_leader_is_notified_of_the_loss)
{
    check_cut_off(servers.follower());
}

BOOST_AUTO_TEST_CASE(holder_at_a_leader_cut_off_from_its_followers_is_notified_of_the_loss)
{
    check_cut_off(servers.leader());
}

/// The session is so long that no beat, which such a leader does not answer, is sent while the leader is paused.
BOOST_FIXTURE_TEST_CASE(resumed_leader_that_was_replaced_does_not_confirm_a_broken_lock, quick_fixture)
{
    const auto leader = servers.leader();
    auto& near = add(40s, url_of(leader));
    auto& far = add(40s, servers.url((leader + 1) % servers.size, servers.size - 1));
    const auto held = run(near.acquire("k", {.ttl = 0ms}));
    run(far.is_locked("k"));
    servers[leader].pause();
    static_cast<void>(servers.leader(leader));
    const auto attempt = [](auto operation) -> asio::awaitable<bool> {
        try {
            co_return co_await std::move(operation);
        } catch (const error&) {
            co_return false;
        }
    };
    const auto breaks = [](locker by) -> asio::awaitable<bool> { co_return !(co_await by.break_lock("k")).empty(); };
    until([&] { return run(attempt(breaks(far))); });
    auto next = run(far.acquire("k", {.ttl = 0ms}));
    const auto lists_former_holder = [](locker by, std::uint64_t fence) -> asio::awaitable<bool> {
        const auto found = co_await by.list();
        co_return std::ranges::any_of(found, [&](const lock_status& each) { return each.fence == fence; });
    };
    auto valid = start(io, attempt(held.is_locked()));
    auto listed = start(io, attempt(lists_former_holder(near, held.fence())));
    // The server receives the requests before it continues.
    io.restart();
    io.run_for(100ms);
    servers[leader].resume();
    BOOST_TEST(!valid.get(io));
    BOOST_TEST(!listed.get(io));
    run(next.release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(a_lock_outlives_a_cut_of_its_server_that_is_shorter_than_its_session)
{
    const auto cut = servers.follower();
    auto held = run(add(20s, url_of(cut)).acquire("k"));
    auto waiter = queue(add(20s, url_of(servers.leader())));
    servers.cut_off(cut);
    // Wait until the follower has given up its leader, and disconnected its clients.
    until([&] { return servers[cut].mode().empty(); });
    servers.cut_off(cut, false);
    until([&] { return !servers[cut].mode().empty(); });
    BOOST_TEST(held.held());
    run(held.extend(20s));
    BOOST_TEST(!waiter.done());
    run(held.release(on_failure::raise));
    run(waiter.get(io).release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(node_created_at_a_server_that_is_then_cut_off_is_found_at_another)
{
    const auto cut = servers.follower();
    faulty_proxy link(servers[cut].port());
    auto& by = add(12s, zookeeper_url(link.port()));
    run(acquire_and_release(by, seen));
    link.cut_at_bytes("/k", loss::delayed_reply);
    auto waiter = start(io, by.acquire("k"));
    until([&] { return nodes().size() == 1; });
    const auto made = nodes();
    servers.cut_off(cut);
    link.lead_to(servers[servers.leader()].port());
    auto held = waiter.get(io);
    seen.on_grant(held);
    BOOST_TEST((nodes() == made));
    servers.cut_off(cut, false);
    run(held.release(on_failure::raise));
    seen.on_release(held);
    check_end();
}

/// The server shortens the session when it receives the handshake.
BOOST_AUTO_TEST_CASE(shortened_session_with_a_lost_reply_never_has_two_holders)
{
    const auto usual = servers.leader();
    const auto shorter = servers.follower();
    servers.limit_sessions(shorter, 2s);
    faulty_proxy link(servers[usual].port());
    auto near = options(8s, zookeeper_url(link.port()));
    near.smallest_session_timeout = 2s;
    auto& one = add(near);
    auto held = run(one.acquire("k", {.ttl = 0ms}));
    seen.on_grant(held);
    const auto sessions = sessions_of(servers[usual].port(), chroot());
    BOOST_TEST_REQUIRE(sessions.size() == 1U);
    auto waiter = queue(add(8s, url_of(usual)));
    link.refuse(true);
    link.lead_to(servers[shorter].port());
    link.cut_at_bytes_in_turn({100, {bytes_of_session(sessions.front()), loss::reply}});
    link.refuse(false);
    until([&] { return link.cuts() > 0; });
    link.refuse(true);
    auto next = waiter.get(io);
    seen.on_grant(next);
    BOOST_TEST(!held.held());
    seen.on_release(held);
    run(next.release(on_failure::raise));
    seen.on_release(next);
    link.cut_at_any({}, loss::reply);
    link.lead_to(servers[usual].port());
    link.refuse(false);
    run(acquire_and_release(one, seen));
    check_end();
}

BOOST_AUTO_TEST_CASE(shortened_session_ends_leases_and_warns)
{
    const auto usual = servers.leader();
    const auto shorter = servers.follower();
    servers.limit_sessions(shorter, 6s);
    faulty_proxy link(servers[usual].port());
    auto& one = add(20s, zookeeper_url(link.port()));
    const auto left = [&](const lock& held) { return held.expires_at() - lease_clock::now(); };
    auto held = run(one.acquire("k", {.ttl = 0ms}));
    BOOST_TEST((left(held) > 6s));
    auto loss_event = start(io, held.lost());
    const auto move_to = [&](std::size_t number) {
        link.refuse(true);
        until([&, before = events->suspensions] { return events->suspensions == before + 1; });
        link.lead_to(servers[number].port());
        link.refuse(false);
        until([&, before = events->reconnections] { return events->reconnections == before + 1; });
    };
    move_to(shorter);
    BOOST_TEST((loss_event.get(io) == lost_reason::session));
    BOOST_TEST(events->warned_of("of a session that is shortened are lost"));
    BOOST_TEST(events->warned_of("smallest_session_timeout"));
    BOOST_TEST(events->warned_of("6 s"));
    auto next = run(one.acquire("k", {.ttl = 0ms}));
    BOOST_TEST((left(next) < 6s));
    // The session may move to the server with the shorter timeout again at any time.
    move_to(usual);
    BOOST_TEST(next.held());
    BOOST_TEST((left(next) < 6s));
    run(next.release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(election_of_ten_seconds_loses_nothing)
{
    auto held = run(add(40s).acquire("k", {.ttl = 0ms}));
    auto waiting = start_waiters(3, 2);
    const auto leader = servers.leader();
    for (const auto each : {leader, (leader + 1) % servers.size})
        servers[each].kill();
    until([&, until = lease_clock::now() + 10s] { return lease_clock::now() > until; });
    BOOST_TEST(held.held());
    servers.restore();
    until([&] { return events->reconnections >= 4; });
    BOOST_TEST(held.held());
    BOOST_TEST(seen.grants == 0);
    BOOST_TEST(events->warnings.empty());
    run(held.release());
    finish_all(waiting);
    check_end();
}

/// The follower first refuses the session, because it knows fewer transactions, and then all sessions, until it has a
/// leader again.
BOOST_AUTO_TEST_CASE(follower_that_lags_behind_loses_nothing)
{
    const auto lagging = servers.follower();
    faulty_proxy link(servers[servers.leader()].port());
    auto& one = add(40s, zookeeper_url(link.port()));
    auto held = run(one.acquire("k", {.ttl = 0ms}));
    auto waiter = queue(add(40s, url_of(servers.leader())));
    servers.cut_off(lagging);
    run(run(one.acquire("other")).release(on_failure::raise));
    link.refuse(true);
    link.lead_to(servers[lagging].port());
    link.refuse(false);
    // The client probes the history within this time.
    until([&, until = lease_clock::now() + 8s] { return lease_clock::now() > until; });
    servers.cut_off(lagging, false);
    until([&] { return events->reconnections == 1; });
    BOOST_TEST(held.held());
    BOOST_TEST(run(held.is_locked()));
    BOOST_TEST(events->warnings.empty());
    run(held.release(on_failure::raise));
    run(waiter.get(io).release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(a_leader_with_a_wrong_clock_ends_nothing_too_early_or_too_late)
{
    constexpr std::size_t wrong = zookeeper_ensemble::size - 1;
    servers.set_clock(wrong, 72h);
    servers.make_leader(wrong);
    auto &one = add(4s), &other = add(4s);
    // The first use takes longer than later ones, and must not use up the ttl.
    run(other.is_locked("k"));
    const auto held = run(one.acquire("k", {.ttl = 8s}));
    seen.on_grant(held);
    auto waiter = queue(other);
    const auto known = run(one.list());
    BOOST_TEST_REQUIRE(known.size() == 1U);
    BOOST_TEST((known.front().created > std::chrono::system_clock::now() + 48h));
    BOOST_TEST(held.held());
    // The holder's own clock ends the lease.
    auto next = waiter.get(io);
    seen.on_grant(next);
    seen.on_release(held);
    run(next.release(on_failure::raise));
    seen.on_release(next);
    check_end();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
