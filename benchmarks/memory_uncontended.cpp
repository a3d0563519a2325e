// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "memory_uncontended.hpp"
#include "memory.hpp"

#include "allocations.hpp"
#include "alternation.hpp"
#include "floor.hpp"
#include "memory_locker.hpp"

#include <colock/colock.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

constexpr std::size_t many_keys = 100'000;

/// Cycles through the keys in an order that a prefetcher cannot predict. The order is the same for equal numbers of
/// keys.
class key_cycle
{
public:
    explicit key_cycle(std::size_t count)
    {
        for (std::size_t i = 0; i < count; ++i)
            keys_.push_back("key:" + std::to_string(i));
        std::ranges::shuffle(keys_, std::minstd_rand(1));
    }
    [[nodiscard]] const std::string& next()
    {
        if (++position_ == keys_.size())
            position_ = 0;
        return keys_[position_];
    }

private:
    std::vector<std::string> keys_;
    std::size_t position_ = 0;
};

asio::awaitable<void> floor_pairs(floor_store& store, key_cycle& keys, std::size_t times)
{
    for (std::size_t i = 0; i < times; ++i) {
        const std::string& key = keys.next();
        co_await store.insert(key);
        co_await store.erase(key);
    }
}

asio::awaitable<void> fill(floor_store& store, std::string key)
{
    co_await store.insert(std::move(key));
}

asio::awaitable<void> pairs(colock::locker& locker, key_cycle& keys, std::size_t times)
{
    for (std::size_t i = 0; i < times; ++i) {
        colock::lock lock = co_await locker.acquire(keys.next());
        co_await lock.release();
    }
}

asio::awaitable<void> pairs_by_destructor(colock::locker& locker, key_cycle& keys, std::size_t times)
{
    for (std::size_t i = 0; i < times; ++i)
        static_cast<void>(co_await locker.acquire(keys.next()));
}

asio::awaitable<void> tries(colock::locker& locker, key_cycle& keys, std::size_t times)
{
    for (std::size_t i = 0; i < times; ++i) {
        if (std::optional<colock::lock> lock = co_await locker.try_acquire(keys.next()))
            co_await lock->release();
    }
}

asio::awaitable<void> busy_tries(colock::locker& locker, std::string key, std::size_t times)
{
    for (std::size_t i = 0; i < times; ++i) {
        if (co_await locker.try_acquire(key))
            throw std::logic_error("the key was not busy");
    }
}

asio::awaitable<void> function_bodies(colock::locker& locker, key_cycle& keys, std::size_t times)
{
    for (std::size_t i = 0; i < times; ++i)
        co_await locker.with_lock(keys.next(), [] {});
}

asio::awaitable<void> coroutine_bodies(colock::locker& locker, key_cycle& keys, std::size_t times)
{
    for (std::size_t i = 0; i < times; ++i)
        co_await locker.with_lock(keys.next(), []() -> asio::awaitable<void> { co_return; });
}

// The same work without a lock. It shows which part of the rows above is the cost of Asio.

asio::awaitable<void> empty_coroutine()
{
    co_return;
}

asio::awaitable<void> posts(std::size_t times)
{
    for (std::size_t i = 0; i < times; ++i)
        co_await asio::post(asio::deferred);
}

asio::awaitable<void> posts_with_deadline(std::size_t times)
{
    const auto executor = co_await asio::this_coro::executor;
    for (std::size_t i = 0; i < times; ++i)
        co_await asio::post(executor, asio::cancel_after(2s, asio::deferred));
}

asio::awaitable<void> spawns(std::size_t times)
{
    const auto executor = co_await asio::this_coro::executor;
    for (std::size_t i = 0; i < times; ++i)
        co_await asio::co_spawn(executor, empty_coroutine(), asio::deferred);
}

asio::awaitable<void> spawns_with_slot(std::size_t times)
{
    const auto executor = co_await asio::this_coro::executor;
    for (std::size_t i = 0; i < times; ++i) {
        asio::cancellation_signal stop;
        co_await asio::co_spawn(executor, empty_coroutine(), asio::bind_cancellation_slot(stop.slot(), asio::deferred));
    }
}

asio::awaitable<void> async_pairs(colock::locker& locker, key_cycle& keys, std::size_t times)
{
    for (std::size_t i = 0; i < times; ++i) {
        colock::lock lock = co_await locker.async_acquire(keys.next());
        co_await lock.async_release();
    }
}

asio::awaitable<void> async_pairs_with_deadline(colock::locker& locker, key_cycle& keys, std::size_t times)
{
    for (std::size_t i = 0; i < times; ++i) {
        colock::lock lock = co_await locker.async_acquire(keys.next(), asio::cancel_after(2s));
        co_await lock.release();
    }
}

/// Measures an acquire and release, and the floor. Returns the ratio.
double uncontended(report& results, memory_locker& env, floor_store& store, std::size_t keys, const std::string& name,
    double seconds, std::optional<double> limit)
{
    key_cycle floor_keys(keys);
    key_cycle our_keys(keys);
    const auto costs = alternate(env.io,
        {{"floor", [&](std::size_t times) { return floor_pairs(store, floor_keys, times); }},
            {"pair", [&](std::size_t times) { return pairs(env.locker, our_keys, times); }}},
        std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
    const double ratio = costs[1] / costs[0];
    results.add({name + ", floor", costs[0], "ns"});
    results.add({name + ", acquire+release", costs[1], "ns"});
    results.add({name + ", ratio", ratio, "x", limit});
    return ratio;
}

} // namespace

void measure_uncontended(const options& settings, report& results)
{
    results.begin("Uncontended acquire+release, CPU time of the one thread, median of alternating slices");
    const auto measure = [&](const std::string& name, std::size_t keys, auto prepare, std::optional<double> limit) {
        memory_locker env;
        const auto store = make_floor();
        prepare(env, *store);
        return uncontended(results, env, *store, keys, name, settings.seconds, limit);
    };
    const auto nothing = [](memory_locker&, floor_store&) {};
    const auto others_held = [](memory_locker& env, floor_store& store) {
        for (std::size_t i = 0; i < many_keys; ++i) {
            env.hold("held:" + std::to_string(i));
            run_until_done(env.io, fill(store, "held:" + std::to_string(i)));
        }
    };
    const auto others_awaited = [](memory_locker& env, floor_store&) {
        for (std::size_t i = 0; i < 100; ++i)
            env.hold("busy:" + std::to_string(i));
        env.start_waiters(
            many_waiters, [&](std::size_t i) { return wait_once(env.locker, "busy:" + std::to_string(i % 100)); });
    };
    // Waiters of other keys must not have a measurable effect. The factor is the difference between two equal runs.
    constexpr double noise = 1.15;
    const double one_key = measure("1 key", 1, nothing, uncontended_limit);
    const double all_keys = measure("100,000 keys in turn", many_keys, nothing, one_key * 1.5);
    measure("100,000 keys in turn, 100,000 others held", many_keys, others_held, one_key * 1.5);
    measure("1 key, 10,000 waiters elsewhere", 1, others_awaited, one_key * noise);
    measure("100,000 keys in turn, 10,000 waiters elsewhere", many_keys, others_awaited, all_keys * noise);
}

void measure_verbs(const options& settings, report& results)
{
    results.begin("Other forms of a lock, one key, as multiples of the floor");
    memory_locker env;
    env.hold("busy");
    const auto store = make_floor();
    key_cycle keys(1);
    const std::string busy = "busy";
    const std::vector<timed_operation> operations{
        {"floor", [&](std::size_t times) { return floor_pairs(*store, keys, times); }},
        {"acquire, release", [&](std::size_t times) { return pairs(env.locker, keys, times); }},
        {"acquire, released by the destructor",
            [&](std::size_t times) { return pairs_by_destructor(env.locker, keys, times); }},
        {"try_acquire, release", [&](std::size_t times) { return tries(env.locker, keys, times); }},
        {"try_acquire of a busy key", [&](std::size_t times) { return busy_tries(env.locker, busy, times); }},
        {"with_lock, empty function", [&](std::size_t times) { return function_bodies(env.locker, keys, times); }},
        {"with_lock, empty coroutine", [&](std::size_t times) { return coroutine_bodies(env.locker, keys, times); }},
        {"async_acquire, async_release", [&](std::size_t times) { return async_pairs(env.locker, keys, times); }},
        {"async_acquire under cancel_after, release",
            [&](std::size_t times) { return async_pairs_with_deadline(env.locker, keys, times); }},
        {"Asio: post", &posts},
        {"Asio: post under cancel_after", &posts_with_deadline},
        {"Asio: co_spawn", &spawns},
        {"Asio: co_spawn with a cancellation slot", &spawns_with_slot},
    };
    const auto costs =
        alternate(env.io, operations, std::chrono::nanoseconds(static_cast<std::int64_t>(settings.seconds * 2e9)));
    const std::map<std::string_view, double> limits{
        {"with_lock, empty function", 15}, {"async_acquire, async_release", 30}};
    for (std::size_t i = 1; i < operations.size(); ++i) {
        const auto limit = limits.find(operations[i].name);
        results.add({operations[i].name, costs[i] / costs[0], "x",
            limit == limits.end() ? std::nullopt : std::optional(limit->second)});
    }
}

void measure_allocations(report& results)
{
    results.begin("Allocations per call, counted over 10,000 calls");
    memory_locker env;
    env.hold("busy");
    key_cycle keys(1);
    const auto count = [&](const std::string& name, const auto& work, std::optional<double> limit) {
        constexpr std::size_t times = 10'000;
        run_until_done(env.io, work(times));
        const auto before = allocations();
        run_until_done(env.io, work(times));
        const auto after = allocations();
        results.add({name + ", operator new", static_cast<double>(after.objects - before.objects) / times, "", limit,
            kind::counted});
        results.add({name + ", coroutine frames not recycled",
            static_cast<double>(after.frames - before.frames) / times, "", {}, kind::counted});
    };
    // One or two allocations per run belong to the benchmark itself.
    count("try_acquire of a busy key", [&](std::size_t times) { return busy_tries(env.locker, "busy", times); }, 0.01);
    count("acquire+release", [&](std::size_t times) { return pairs(env.locker, keys, times); }, {});
}

} // namespace bench
