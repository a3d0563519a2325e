// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Slots that move from one master to another while their locks are used.
#include "cluster.hpp"
#include "load.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace colock::testing {

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(redis_cluster_moves)

namespace {

boost::test_tools::assertion_result moves_in_one_step(boost::unit_test::test_unit_id test)
{
    const bool found = redis_cluster().moves_slots_in_one_step();
    if (!found)
        std::cout << "skipped: " << boost::unit_test::framework::get(test, boost::unit_test::TUT_ANY).full_name()
                  << ": the server has no CLUSTER MIGRATESLOTS" << std::endl;
    return found;
}

} // namespace

BOOST_AUTO_TEST_CASE(locks_are_held_once_while_slots_move)
{
    redis_cluster servers;
    cluster_load load(servers.url(), keys_in_six_slots(), 5s);
    int moves = 0;
    load.run(6s,
            [&] {
                const auto ends = std::chrono::steady_clock::now() + 5s;
                while (std::chrono::steady_clock::now() < ends) {
                    for (const auto* const tag : {"a", "b", "c", "d", "e", "f"}) {
                        const auto key = "{" + std::string(tag) + "}";
                        const auto slot = servers.slot_of(key);
                        const auto from = servers.owner_of(key);
                        servers.move_slot(slot, from, (from + 1) % redis_cluster::masters);
                        ++moves;
                    }
                }
            })
        .check();
    BOOST_TEST(moves > 6);
    BOOST_TEST_MESSAGE(moves << " moves");
}

/// While a slot is open, keys that do not exist are created at the target, behind ASKING, and keys that exist are used
/// at the source.
BOOST_AUTO_TEST_CASE(locks_of_an_open_slot_are_granted_at_once)
{
    redis_cluster servers;
    cluster_load load(servers.url(), keys_in_six_slots(), 5s);
    const auto seen = load.run(7s, [&] {
        std::this_thread::sleep_for(500ms);
        const auto slot = servers.slot_of("{a}");
        const auto from = servers.owner_of("{a}"), to = (from + 1) % redis_cluster::masters;
        servers.begin_move(slot, from, to);
        std::this_thread::sleep_for(5s);
        servers.move_keys(slot, from, to);
        servers.finish_move(slot, from, to);
    });
    seen.check();
    // Much less than the slot was open, and much more than a busy machine needs.
    BOOST_TEST(seen.longest_acquire.count() < 4000);
}

/// Valkey 9 moves a slot with its keys in one step, without ASK.
BOOST_AUTO_TEST_CASE(
    locks_are_held_once_while_slots_move_in_one_step, *boost::unit_test::precondition(moves_in_one_step))
{
    redis_cluster servers;
    cluster_load load(servers.url(), keys_in_six_slots(), 5s);
    int moves = 0;
    load.run(6s,
            [&] {
                const auto ends = std::chrono::steady_clock::now() + 5s;
                while (std::chrono::steady_clock::now() < ends) {
                    for (const auto* const tag : {"{a}", "{b}", "{c}", "{d}", "{e}", "{f}"}) {
                        servers.move_slot_in_one_step(tag, (servers.owner_of(tag) + 1) % redis_cluster::masters);
                        ++moves;
                    }
                }
            })
        .check();
    BOOST_TEST(moves > 6);
    BOOST_TEST_MESSAGE(moves << " moves");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
