// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Groups that compete: they are served in arrival order and do not deadlock.
#include "locker_helpers.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace colock::contract {

namespace {

/// Starts acquires in a known order, and records the order in which they are granted.
class grant_recorder
{
public:
    explicit grant_recorder(fixture& env) : on_(env) {}

    /// Starts an acquire, and returns when it waits behind all earlier acquires.
    void add(const locker& by, group_members keys)
    {
        const auto waiting = [&] { return by.stats().waiting; };
        const auto before = waiting();
        all_.push_back(testing::start(on_.io(), take(by, std::move(keys), static_cast<int>(all_.size()))));
        pass_slowly_until(on_, [&] { return waiting() > before; });
    }
    /// Waits for all acquires, and returns their numbers in the order of the grants.
    [[nodiscard]] std::vector<int> order()
    {
        for (auto& each : all_)
            each.get(on_.io());
        return order_;
    }
    [[nodiscard]] std::vector<int> order_of_calls() const
    {
        std::vector<int> numbers(all_.size());
        std::iota(numbers.begin(), numbers.end(), 0);
        return numbers;
    }

private:
    asio::awaitable<void> take(locker by, group_members keys, int number)
    {
        auto group = co_await by.acquire_all(std::move(keys));
        order_.push_back(number);
        co_await group.release();
    }

    fixture& on_;
    std::vector<testing::running<void>> all_;
    std::vector<int> order_;
};

} // namespace

COLOCK_CONTRACT_CASE(locker, deadlock_with_a_nested_acquire_ends_by_total_time)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    const acquire_options brief{.retry = retry_policy::fixed(20ms).total_time(env.short_ttl())};
    auto outer = run_coro(env.io(), other.acquire("b"));
    auto group = testing::start(env.io(), mine.acquire_all(strings{"a", "b"}, brief));
    pass_slowly_until(env, [&] { return mine.stats().waiting > 0; });
    BOOST_TEST((failure_of<retry_error>(env, other.acquire("a", {.retry = retry_policy::fixed(20ms).total_time(
                                                                     env.short_ttl() / 4)})) == errc::retry_exhausted));
    pass_slowly_until(env, [&] { return group.done(); });
    BOOST_CHECK_THROW(static_cast<void>(group.get(env.io())), retry_error);
    run_coro(env.io(), outer.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, groups_and_singles_of_a_locker_are_served_in_arrival_order)
{
    const auto mine = env.make_locker();
    auto blocker = run_coro(env.io(), mine.acquire("a"));
    grant_recorder grants(env);
    for (int n = 0; n < 8; ++n) {
        grants.add(mine, {"a", "b", "c"});
        if (n % 2)
            grants.add(mine, {"a"});
        else if (env.capabilities().shared)
            grants.add(mine, {"a", {"b", lock_mode::shared}});
    }
    run_coro(env.io(), blocker.release(on_failure::raise));
    BOOST_TEST(grants.order() == grants.order_of_calls(), boost::test_tools::per_element());
}

COLOCK_CONTRACT_CASE(locker, groups_of_several_lockers_are_served_in_arrival_order, &capabilities::fifo)
{
    const auto holder = env.make_locker();
    auto blocker = run_coro(env.io(), holder.acquire("a"));
    // Only the first caller of a locker is in the backend's queue.
    std::vector<colock::locker> lockers;
    grant_recorder grants(env);
    for (int n = 0; n < 4; ++n) {
        for (const auto& by : {env.make_locker(), env.make_other_locker()}) {
            lockers.push_back(by);
            grants.add(by, {"a", "b"});
        }
    }
    run_coro(env.io(), blocker.release(on_failure::raise));
    BOOST_TEST(grants.order() == grants.order_of_calls(), boost::test_tools::per_element());
}

COLOCK_CONTRACT_CASE(locker, streams_of_singles_do_not_starve_a_group)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    bool stop = false;
    const auto stream = [&](locker by, const char* key) -> asio::awaitable<void> {
        while (!stop) {
            auto held = co_await by.acquire(key);
            co_await asio::post(asio::deferred);
            co_await held.release();
        }
    };
    // If only the callers of one locker are ordered, the streams use the same locker.
    const auto& by = env.capabilities().fifo ? other : mine;
    std::vector<testing::running<void>> streams;
    for (const auto* key : {"a", "b"})
        streams.push_back(testing::start(env.io(), stream(by, key)));
    for (int n = 0; n < 3; ++n) {
        auto waiting = testing::start(env.io(), mine.acquire_all(strings{"a", "b"}));
        pass_slowly_until(env, [&] { return waiting.done(); });
        auto group = waiting.get(env.io());
        BOOST_TEST(group.held());
        run_coro(env.io(), group.release());
    }
    stop = true;
    for (auto& each : streams)
        each.get(env.io());
}

COLOCK_CONTRACT_CASE(locker, groups_in_opposite_orders_do_not_deadlock)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    const auto work = [](colock::locker by, strings keys) -> asio::awaitable<void> {
        for (int i = 0; i < 5; ++i) {
            auto group = co_await by.acquire_all(keys);
            BOOST_TEST(group.held());
            co_await group.release();
        }
    };
    auto first = testing::start(env.io(), work(mine, {"a", "b"}));
    auto second = testing::start(env.io(), work(other, {"b", "a"}));
    for (int i = 0; i < 200 && !(first.done() && second.done()); ++i)
        env.pass_time(env.short_ttl() / 20);
    first.get(env.io());
    second.get(env.io());
}

COLOCK_CONTRACT_CASE(locker, many_groups_of_random_keys_do_not_deadlock)
{
    constexpr int lists = 1000;
    constexpr std::size_t callers = 64;
    const auto mine = env.make_locker(), other = env.make_other_locker();
    std::mt19937 random(7);
    std::map<std::string, int> holders;
    int begun = 0;
    std::size_t ended = 0;
    const auto random_keys = [&] {
        strings keys;
        for (auto left = 2 + random() % 4; left > 0; --left)
            keys.push_back("k" + std::to_string(random() % 20));
        return keys;
    };
    const auto work = [&](const locker& by) -> asio::awaitable<void> {
        while (begun++ < lists) {
            auto group = co_await by.acquire_all(random_keys());
            BOOST_TEST(group.held());
            for (const auto& each : group.locks())
                BOOST_TEST(++holders[each.key()] == 1);
            co_await asio::post(asio::deferred);
            for (const auto& each : group.locks())
                --holders[each.key()];
            co_await group.release();
        }
        ++ended;
    };
    std::vector<testing::running<void>> all;
    for (std::size_t n = 0; n < callers; ++n)
        all.push_back(testing::start(env.io(), work(n % 2 ? mine : other)));
    for (int i = 0; i < 20'000 && ended < callers; ++i)
        env.pass_time(env.short_ttl() / 50);
    BOOST_TEST_REQUIRE(ended == callers, ended << " of " << callers << " have ended");
    for (auto& each : all)
        each.get(env.io());
}

COLOCK_CONTRACT_CASE(locker, lists_with_both_modes_in_opposite_orders_do_not_deadlock, &capabilities::shared)
{
    constexpr int lists = 1000;
    constexpr std::size_t callers = 64;
    const auto mine = env.make_locker(), other = env.make_other_locker();
    std::mt19937 random(5);
    std::map<std::string, int> readers;
    int begun = 0;
    std::size_t ended = 0;
    const auto random_members = [&](bool backwards) {
        std::vector<group_member> members;
        for (const auto* key : {"a", "b", "c", "d", "e", "f"}) {
            if (random() % 3 == 0)
                members.emplace_back(key, random() % 3 ? lock_mode::shared : lock_mode::exclusive);
        }
        if (members.empty())
            members.emplace_back("a");
        if (backwards)
            std::ranges::reverse(members);
        return members;
    };
    const auto work = [&](const locker& by, bool backwards) -> asio::awaitable<void> {
        while (begun++ < lists) {
            auto group = co_await by.acquire_all(random_members(backwards));
            BOOST_TEST(group.held());
            for (const auto& each : group.locks()) {
                const bool alone = each.mode() == lock_mode::exclusive;
                BOOST_TEST((alone ? readers[each.key()] == 0 : readers[each.key()] >= 0));
                readers[each.key()] += alone ? -1000 : 1;
            }
            co_await asio::post(asio::deferred);
            for (const auto& each : group.locks())
                readers[each.key()] -= each.mode() == lock_mode::exclusive ? -1000 : 1;
            co_await group.release();
        }
        ++ended;
    };
    std::vector<testing::running<void>> all;
    for (std::size_t n = 0; n < callers; ++n)
        all.push_back(testing::start(env.io(), work(n % 2 ? mine : other, n % 2 == 0)));
    for (int i = 0; i < 20'000 && ended < callers; ++i)
        env.pass_time(env.short_ttl() / 50);
    BOOST_TEST_REQUIRE(ended == callers, ended << " of " << callers << " have ended");
    for (auto& each : all)
        each.get(env.io());
}

} // namespace colock::contract
