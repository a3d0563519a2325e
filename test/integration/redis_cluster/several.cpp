// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Several locks that are acquired together.
#include "cluster.hpp"
#include "integration/redis/fixture.hpp"

#include <colock/locker.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace colock::testing {

BOOST_AUTO_TEST_SUITE(redis_cluster_several)

namespace {

redis_cluster& shared_cluster()
{
    static redis_cluster servers;
    servers.clear();
    return servers;
}

std::vector<plain_claim_ptr> claims_of(const std::vector<std::string>& keys)
{
    std::vector<plain_claim_ptr> claims;
    for (const auto& each : keys)
        claims.push_back(driver::exclusive(each));
    return claims;
}

std::vector<std::string> keys_of_tag(std::string_view tag)
{
    std::vector<std::string> keys;
    for (int i = 0; i < 8; ++i)
        keys.push_back('{' + std::string(tag) + '}' + std::to_string(i));
    return keys;
}

void reset_counts(redis_cluster& servers)
{
    for (std::size_t i = 0; i < redis_cluster::masters; ++i)
        servers.node(i)({"CONFIG", "RESETSTAT"});
}

/// Number of times that the masters have executed a command since `reset_counts`.
int calls_of(redis_cluster& servers, const std::string& command)
{
    int calls = 0;
    for (std::size_t i = 0; i < redis_cluster::masters; ++i) {
        const auto name = "cmdstat_" + command + ":calls=";
        const auto reply = servers.node(i)({"INFO", "commandstats"});
        if (const auto at = reply.find(name); at != reply.npos)
            calls += std::stoi(reply.substr(at + name.size()));
    }
    return calls;
}

} // namespace

BOOST_AUTO_TEST_CASE(locks_of_one_slot_are_taken_by_one_script)
{
    auto& servers = shared_cluster();
    client_side client({.url = servers.url()});
    const auto all = claims_of(keys_of_tag("a"));
    std::uint64_t last = 0;
    for (int round = 0; round < 3; ++round) {
        reset_counts(servers);
        for (const auto fence : client.test_driver.grant_all(all)) {
            BOOST_TEST(fence > last);
            last = fence;
        }
        if (round > 0) {
            BOOST_TEST(calls_of(servers, "evalsha") == 1);
            BOOST_TEST(calls_of(servers, "incrby") == 1);
        }
        for (const auto& each : all)
            client.test_driver.release_held(each);
    }
    const auto single = driver::exclusive("{a}0");
    BOOST_TEST(client.test_driver.grant(single) > last);
}

/// The index of the group, which is in another slot, takes one more script.
BOOST_AUTO_TEST_CASE(acquire_all_with_a_hash_tag_takes_two_scripts)
{
    auto& servers = shared_cluster();
    client_side client({.url = servers.url()});
    const locker by(client.test_driver.shared_backend());
    for (int round = 0; round < 40; ++round) {
        // The entries of the last group are removed in the background.
        client.run_for(5ms);
        reset_counts(servers);
        auto group = run_coro(client.io, by.acquire_all({"{a}0", "{a}1", "{a}2", "{a}3"}));
        BOOST_TEST(group.held());
        // The index of each group is on another master, which is sent a script again until it knows it.
        if (round == 39) {
            BOOST_TEST(calls_of(servers, "evalsha") == 2);
            BOOST_TEST(calls_of(servers, "eval") == 0);
        }
        run_coro(client.io, group.release());
    }
}

BOOST_AUTO_TEST_CASE(locks_of_several_slots_are_not_requested_in_one_step)
{
    auto& servers = shared_cluster();
    client_side client({.url = servers.url()});
    const auto outcome = client.test_driver.create_all(claims_of({"a", "b"}));
    BOOST_TEST((outcome.status == create_status::failed));
    BOOST_TEST(outcome.refusal.error->code == errc::unsupported);
    BOOST_TEST(servers.keys().empty());
    const locker by(client.test_driver.shared_backend());
    auto group = run_coro(client.io, by.try_acquire_all({"c", "b", "a"}));
    BOOST_TEST_REQUIRE(group.has_value());
    BOOST_TEST(group->locks()[0].key() == "a");
    // The locks that were granted before the busy one are released.
    BOOST_TEST(!run_coro(client.io, by.try_acquire_all({"0", "1", "b"})).has_value());
    for (int i = 0; i < 500 && client.test_driver.list().size() != 3u; ++i)
        client.run_for(10ms);
    client_side other({.url = servers.url()});
    BOOST_TEST(other.test_driver.release_group(std::string(group->id())).size() == 3u);
}

/// While a slot moves, the server refuses a request for several keys of which some do not exist.
BOOST_AUTO_TEST_CASE(locks_in_an_open_slot_are_acquired_one_by_one)
{
    auto& servers = shared_cluster();
    client_side client({.url = servers.url()});
    const auto slot = servers.slot_of("{a}");
    const auto from = servers.owner_of("{a}"), to = (from + 1) % redis_cluster::masters;
    const auto held = driver::exclusive("{a}5");
    client.test_driver.grant(held);
    servers.begin_move(slot, from, to);
    const auto refused = client.test_driver.create_all(claims_of({"{a}0", "{a}1"}));
    BOOST_TEST((refused.status == create_status::failed));
    BOOST_TEST(refused.refusal.error->code == errc::unsupported);
    const locker by(client.test_driver.shared_backend());
    auto group = run_coro(client.io, by.try_acquire_all({"{a}0", "{a}1", "{a}2"}));
    BOOST_TEST_REQUIRE(group.has_value());
    BOOST_TEST(!run_coro(client.io, by.try_acquire_all({"{a}4", "{a}5"})).has_value());
    servers.move_keys(slot, from, to);
    servers.finish_move(slot, from, to);
    BOOST_TEST(run_coro(client.io, group->release()).size() == 3u);
    client.test_driver.release_held(held);
}

/// Two lockers acquire the same locks of many slots, and name them in opposite order.
BOOST_AUTO_TEST_CASE(opposite_orders_end_without_a_deadlock)
{
    auto& servers = shared_cluster();
    client_side one({.url = servers.url()}), other({.url = servers.url()});
    const locker first(one.test_driver.shared_backend());
    const locker second(redis::make_adapter(one.io.get_executor(), {.url = servers.url()}));
    std::vector<std::string> keys;
    for (int i = 0; i < 12; ++i)
        keys.push_back("k" + std::to_string(i));
    for (const auto* const tagged : {"{t}1", "{t}2", "{t}3"})
        keys.emplace_back(tagged);
    int holders = 0, overlaps = 0, done = 0;
    const auto work = [&](locker by, bool reversed) -> asio::awaitable<void> {
        for (int i = 0; i < 40; ++i) {
            // Some requests are for locks of one slot.
            std::vector<std::string> order(i % 4 == 3 ? keys.begin() + 12 : keys.begin(), keys.end());
            if (reversed)
                std::ranges::reverse(order);
            auto group = co_await by.acquire_all(std::move(order));
            overlaps += holders++ > 0 ? 1 : 0;
            --holders;
            co_await group.release();
        }
        ++done;
    };
    asio::co_spawn(one.io, work(first, false), asio::detached);
    asio::co_spawn(one.io, work(second, true), asio::detached);
    const auto ends = std::chrono::steady_clock::now() + 60s;
    run_until(one.io, [&] { return done == 2 || std::chrono::steady_clock::now() > ends; });
    BOOST_TEST(done == 2);
    BOOST_TEST(overlaps == 0);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
