// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Servers whose clocks differ or are set while a lock is held. The expiry of a lease is judged by the server that is
// asked.

#include "fixture.hpp"
#include "sentinel.hpp"
#include "support/movable_clock.hpp"
#include "support/print.hpp"
#include "support/run.hpp"

#include <colock/locker.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace colock::testing {
namespace {

/// Lets the master start the synchronization at once, without waiting for other replicas.
const std::vector<std::string> syncs_at_once{"--repl-diskless-sync-delay", "0"};

/// A clock gets ahead by `ahead` while a lock is held for `ttl`, whose `max_clock_lead` is `lead`.
struct jump
{
    std::chrono::milliseconds ttl;
    std::chrono::milliseconds ahead;
    std::chrono::milliseconds lead;
    bool safe;
};
/// In the last two cases the clock gets further ahead than the lead, so no client can prevent an overlap. It lasts long
/// enough for a slow machine.
constexpr jump jumps[] = {
    {3s, -500ms, 500ms, true}, {3s, 500ms, 500ms, true}, {60s, 59s, 0ms, false}, {60s, 59s, 500ms, false}};

/// Returns how long the lease of the first holder would still have lasted when the second was granted the lock.
/// Negative if the leases did not overlap.
lease_clock::duration overlap_of(asio::io_context& io, const lock& first, const redis::options& options)
{
    locker other(redis::make_adapter(io.get_executor(), options));
    std::optional<lock> second;
    while (!second)
        second = run_coro(io, other.try_acquire("k", {.ttl = 10s}));
    const auto overlap = first.expires_at() - lease_clock::now();
    second.reset();
    run_coro(io, other.shutdown(5s));
    return overlap;
}

/// Connects before the acquire, because the first use takes longer than later ones and must not use up the ttl.
lock acquire_connected(asio::io_context& io, const locker& locks, std::chrono::milliseconds ttl)
{
    BOOST_TEST(!run_coro(io, locks.is_locked("k")));
    return run_coro(io, locks.acquire("k", {.ttl = ttl}));
}

/// A replica whose clock is ahead is promoted while the lock is held.
lease_clock::duration overlap_after_failover(const jump& by)
{
    movable_clock clock(by.ahead);
    redis_server master(syncs_at_once);
    redis_server replica({}, clock.environment());
    replica({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
    sentinel names(master.port());
    const redis::options options{.url = names.url(), .max_clock_lead = by.lead};
    asio::io_context io;
    locker one(redis::make_adapter(io.get_executor(), options));
    while (master({"WAIT", "1", "1000"}) != "1")
        continue;
    const auto first = acquire_connected(io, one, by.ttl);
    // Waits until the replica has the lock and the fence counter. DBSIZE also counts keys that have expired by the
    // clock of the replica.
    while (replica({"DBSIZE"}) != "2")
        continue;
    replica({"REPLICAOF", "NO", "ONE"});
    names.master = replica.port();
    master.kill();
    return overlap_of(io, first, options);
}

/// The clock of the only server is set while the lock is held.
lease_clock::duration overlap_after_step(const jump& by)
{
    movable_clock clock;
    redis_server server({}, clock.environment());
    const redis::options options{.url = server.url(), .max_clock_lead = by.lead};
    asio::io_context io;
    locker one(redis::make_adapter(io.get_executor(), options));
    const auto first = acquire_connected(io, one, by.ttl);
    clock.set_ahead(by.ahead);
    return overlap_of(io, first, options);
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_clocks)

BOOST_AUTO_TEST_CASE(a_promoted_replica_grants_to_a_second_holder_only_if_its_clock_is_further_ahead_than_the_lead)
{
    for (const auto& each : jumps)
        BOOST_TEST((overlap_after_failover(each) < 0s) == each.safe, each.ahead << ", lead " << each.lead);
}

BOOST_AUTO_TEST_CASE(clock_jump_causes_overlap_only_beyond_the_clock_lead)
{
    for (const auto& each : jumps)
        BOOST_TEST((overlap_after_step(each) < 0s) == each.safe, each.ahead << ", lead " << each.lead);
}

BOOST_AUTO_TEST_CASE(by_default_leases_are_shortened_once_replicas_are_seen)
{
    redis_server server(syncs_at_once);
    redis_server replica;
    client_side client({.url = server.url(), .operation_timeout = 5s});
    const auto& backend = client.test_driver.backend();
    client.test_driver.grant(driver::exclusive("alone"));
    BOOST_TEST((backend.max_clock_lead(30s) == 0ms));
    replica({"REPLICAOF", "127.0.0.1", std::to_string(server.port())});
    while (server({"WAIT", "1", "1000"}) != "1")
        continue;
    // The adapter learns of replicas when it connects again.
    client.test_driver.grant(driver::exclusive("unseen"));
    BOOST_TEST((backend.max_clock_lead(30s) == 0ms));
    const auto reconnect_for = [&](const char* key) {
        run_coro(client.io, client.test_driver.backend().close(1s));
        client.test_driver.grant(driver::exclusive(key));
    };
    reconnect_for("seen");
    BOOST_TEST((backend.max_clock_lead(30s) == 250ms));
    BOOST_TEST((backend.max_clock_lead(1s) == 100ms));
    BOOST_TEST((backend.max_clock_lead(100ms) == 10ms));
    // A replica that is disconnected may be promoted after it reconnects.
    replica.kill();
    while (server({"INFO", "replication"}).find("connected_slaves:0") == std::string::npos)
        client.run_for(10ms);
    reconnect_for("away");
    BOOST_TEST((backend.max_clock_lead(30s) == 250ms));

    client_side wary({.url = server.url(), .max_clock_lead = 7s});
    BOOST_TEST((wary.test_driver.backend().max_clock_lead(30s) == 7s));
    client_side trusting({.url = "redis+sentinel://127.0.0.1:1/main", .max_clock_lead = 0ms});
    BOOST_TEST((trusting.test_driver.backend().max_clock_lead(30s) == 0ms));
}

BOOST_AUTO_TEST_CASE(default_clock_lead_is_used_if_replicas_are_unknown)
{
    // Sentinels promote replicas. Without INFO the replicas are unknown.
    client_side sentinels({.url = "redis+sentinel://127.0.0.1:1/main"});
    BOOST_TEST((sentinels.test_driver.backend().max_clock_lead(30s) == 250ms));

    redis_server server;
    server({"ACL", "SETUSER", "silent", "on", ">word", "~*", "&*", "+@all", "-info"});
    client_side client({.url = server.url(), .user = "silent", .password = "word"});
    client.test_driver.grant(driver::exclusive("k"));
    BOOST_TEST((client.test_driver.backend().max_clock_lead(30s) == 250ms));
}

BOOST_AUTO_TEST_CASE(a_quorum_counts_the_largest_lead_of_its_masters)
{
    redis_server alone[2];
    redis_server server(syncs_at_once);
    redis_server replica;
    replica({"REPLICAOF", "127.0.0.1", std::to_string(server.port())});
    while (server({"WAIT", "1", "1000"}) != "1")
        continue;
    asio::io_context io;
    const std::vector urls{alone[0].url(), server.url(), alone[1].url()};
    const auto quorum = redis::make_quorum(io.get_executor(), urls);
    BOOST_TEST((quorum->max_clock_lead(30s) == 0ms));
    driver(io, quorum).grant(driver::exclusive("k"));
    run_until(io, [&] { return quorum->max_clock_lead(30s) == 250ms; });
    const auto cautious = redis::make_quorum(io.get_executor(), urls, {.max_clock_lead = 3s});
    BOOST_TEST((cautious->max_clock_lead(30s) == 3s));
    BOOST_CHECK_EXCEPTION(locker(cautious, {.ttl = 11'999ms}), validation_error,
        [](const auto& refused) { return refused.code() == errc::invalid_ttl; });
    run_coro(io, quorum->close(1s));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
