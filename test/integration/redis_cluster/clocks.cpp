// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Masters whose clocks are five seconds apart.
#include "cluster.hpp"
#include "load.hpp"
#include "support/movable_clock.hpp"
#include "support/run.hpp"

#include <colock/locker.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>

namespace colock::testing {

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(redis_cluster_clocks)

namespace {

struct masters_with_wrong_clocks
{
    movable_clock ahead{5s};
    movable_clock behind{-5s};
    redis_cluster servers{
        std::chrono::seconds(15), {}, bus_link::direct, {{}, ahead.environment(), behind.environment()}};
};

/// Moves the slot of the key to the master.
void move_to(redis_cluster& servers, const std::string& key, std::size_t to)
{
    if (const auto from = servers.owner_of(key); from != to)
        servers.move_slot(servers.slot_of(key), from, to);
}

/// Returns how long the lease of the first holder would still have lasted when the second was granted the lock at a
/// master whose clock is five seconds ahead. Negative if the leases did not overlap.
lease_clock::duration overlap_after_move(const redis::options& options, lock_mode mode, std::chrono::milliseconds ttl)
{
    masters_with_wrong_clocks all;
    auto settings = options;
    settings.url = all.servers.url();
    asio::io_context io;
    locker locks(redis::make_adapter(io.get_executor(), settings));
    locker others(redis::make_adapter(io.get_executor(), settings));
    move_to(all.servers, "{a}", 0);
    const auto first = run_coro(io, locks.acquire("{a}", {.ttl = ttl, .mode = mode}));
    move_to(all.servers, "{a}", 1);
    const auto second = run_coro(io, others.acquire("{a}", {.ttl = ttl}));
    const auto overlap = first.expires_at() - lease_clock::now();
    BOOST_TEST(second.fence() > first.fence());
    run_coro(io, locks.shutdown(5s));
    run_coro(io, others.shutdown(5s));
    return overlap;
}

} // namespace

BOOST_AUTO_TEST_CASE(exclusive_locks_do_not_depend_on_the_clocks)
{
    masters_with_wrong_clocks all;
    auto& servers = all.servers;
    cluster_load load(servers.url(), keys_in_six_slots(), 5s);
    load.run(5s,
            [&] {
                for (const auto ends = std::chrono::steady_clock::now() + 4s; std::chrono::steady_clock::now() < ends;)
                {
                    for (const auto* const tag : {"{a}", "{b}", "{c}", "{d}", "{e}", "{f}"})
                        move_to(servers, tag, (servers.owner_of(tag) + 1) % redis_cluster::masters);
                }
            })
        .check();
    BOOST_TEST((overlap_after_move({.max_clock_lead = 0ms}, lock_mode::exclusive, 3s) < 0s));
}

/// The expiry of a reader is stored by the clock of the first master, and judged by that of the second.
BOOST_AUTO_TEST_CASE(shared_locks_depend_on_the_clock_lead)
{
    BOOST_TEST((overlap_after_move({.max_clock_lead = 0ms}, lock_mode::shared, 7s) > 0s));
    BOOST_TEST((overlap_after_move({.max_clock_lead = 5s}, lock_mode::shared, 20s) < 0s));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
