// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "memory.hpp"

#include "allocations.hpp"
#include "alternation.hpp"
#include "load.hpp"
#include "memory_locker.hpp"
#include "memory_uncontended.hpp"
#include "statistics.hpp"

#include <colock/colock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <malloc.h>

namespace asio = boost::asio;

namespace bench {
namespace {

asio::awaitable<void> async_wait_once(colock::locker locker, std::string key)
{
    colock::lock lock = co_await locker.async_acquire(std::move(key));
    co_await lock.release();
}

void measure_waiters(report& results)
{
    results.begin("Bytes per waiter, 10,000 on one key, the caller's coroutine included");
    const auto measure = [&](const std::string& name, auto wait, double limit) {
        memory_locker env;
        env.hold("busy");
        env.start_waiters(100, [&](std::size_t) { return wait(env.locker, "busy"); });
        env.held.clear();
        env.io.restart();
        env.io.run();

        // Returns free memory to the system. Otherwise the resident set would not grow if an earlier part had used more
        // memory.
        malloc_trim(0);
        env.hold("busy");
        const byte_count counted;
        const auto resident = resident_bytes();
        env.start_waiters(many_waiters, [&](std::size_t) { return wait(env.locker, "busy"); });
        const auto bytes = static_cast<double>(counted.grown()) / many_waiters;
        const auto grown = static_cast<double>(resident_bytes() - std::min(resident, resident_bytes())) / many_waiters;
        results.add({name + ", heap", bytes, "bytes", limit, kind::counted});
        results.add({name + ", resident set", grown, "bytes"});
    };
    // The limit was 2,048. The same blocks took 2,037 bytes in one build and 2,067 in another: glibc adds up to 16
    // bytes to a block of aligned_alloc, depending on its address.
    measure("acquire", wait_once, 2112.0);
    // The limit was 2,560, before the operation ran as a coroutine on a strand of its own.
    measure("async_acquire", async_wait_once, 3200.0);
}

void measure_hand_off(report& results)
{
    results.begin("Hand-off from each release to the next of 10,000 waiters on one key");
    std::vector<double> costs;
    std::size_t out_of_order = 0;
    for (int round = 0; round < 5; ++round) {
        memory_locker env;
        env.hold("busy");
        std::size_t next = 0;
        const auto wait_in_turn = [&](std::size_t turn) -> asio::awaitable<void> {
            colock::lock lock = co_await env.locker.acquire("busy");
            if (turn != next)
                ++out_of_order;
            ++next;
            co_await lock.release();
        };
        env.start_waiters(many_waiters, wait_in_turn);
        const auto start = thread_cpu_time();
        env.held.clear();
        env.io.restart();
        env.io.run();
        costs.push_back(static_cast<double>((thread_cpu_time() - start).count()) / many_waiters);
        if (next != many_waiters)
            throw std::logic_error("not all waiters were granted the lock");
    }
    results.add({"out of arrival order", static_cast<double>(out_of_order), "", 0.0, kind::counted});
    results.add({"hand-off", median(costs), "ns"});
    results.add({"hand-offs per second of CPU", 1e9 / median(costs), "/s"});
}

/// Returns the CPU time per reader of a writer's release, and of the grants and releases of the readers behind it.
double time_per_reader(std::size_t readers)
{
    memory_locker env;
    env.hold("busy");
    env.start_waiters(readers, [&](std::size_t) -> asio::awaitable<void> {
        colock::lock lock = co_await env.locker.acquire("busy", {.mode = colock::lock_mode::shared});
        co_await lock.release();
    });
    const auto start = thread_cpu_time();
    env.held.clear();
    env.io.restart();
    env.io.run();
    return static_cast<double>((thread_cpu_time() - start).count()) / static_cast<double>(readers);
}

/// Returns the CPU time per group of releasing groups one after the other, each with a caller that waits in `lost()`.
double time_per_group(std::size_t count)
{
    memory_locker env;
    std::vector<colock::lock_group> groups;
    run_until_done(env.io,
        [](colock::locker locker, std::size_t size, std::vector<colock::lock_group>& result) -> asio::awaitable<void> {
            for (std::size_t n = 0; n < size; ++n)
                result.push_back(co_await locker.acquire_all({"a" + std::to_string(n), "b" + std::to_string(n)}));
        }(env.locker, count, groups));
    std::size_t lost_count = 0;
    for (auto& each : groups)
        each.async_lost([&](colock::error_code, const colock::lost_lock&) { ++lost_count; });
    env.io.restart();
    env.io.poll();
    const auto start = thread_cpu_time();
    run_until_done(env.io, [](std::vector<colock::lock_group>& held) -> asio::awaitable<void> {
        for (auto& each : held) {
            co_await each.release();
            co_await asio::post(asio::deferred);
        }
    }(groups));
    env.io.restart();
    env.io.run();
    if (lost_count != count)
        throw std::logic_error("not all callers of lost() were notified");
    return static_cast<double>((thread_cpu_time() - start).count()) / static_cast<double>(count);
}

/// The cost per waiter must not grow with the number of waiters.
void measure_crowds(report& results)
{
    results.begin("Cost per waiter in a crowd");
    const auto add = [&](const std::string& name, std::size_t few, std::size_t many, auto measure) {
        std::vector<double> costs;
        std::vector<double> ratios;
        for (int round = 0; round < 5; ++round) {
            costs.push_back(measure(many));
            ratios.push_back(costs.back() / measure(few));
        }
        results.add({name, median(costs), "ns"});
        results.add({name + ", to a tenth of them", median(ratios), "x", 2.0});
    };
    add("4,000 readers behind a writer", 400, 4'000, time_per_reader);
    add("4,000 groups with callers of lost()", 400, 4'000, time_per_group);
}

/// Returns the pairs per second of `count` threads with one locker. Each thread has its own io_context and keys.
double pairs_of_threads(std::size_t count, std::chrono::duration<double> time)
{
    asio::io_context home{1};
    const colock::locker shared(colock::memory::make_adapter(home.get_executor()));
    std::atomic<bool> stopping = false;
    std::atomic<std::uint64_t> pairs = 0;
    const auto work = [&](colock::locker locker, std::size_t number) -> asio::awaitable<void> {
        constexpr std::size_t key_count = 64;
        std::vector<std::string> keys;
        for (std::size_t i = 0; i < key_count; ++i)
            keys.push_back("thread " + std::to_string(number) + ", key " + std::to_string(i));
        std::uint64_t done = 0;
        for (; !stopping; ++done) {
            auto held = co_await locker.acquire(keys[done % key_count]);
            co_await held.release();
        }
        pairs += done;
    };
    std::vector<std::thread> threads;
    const auto begun = std::chrono::steady_clock::now();
    for (std::size_t number = 0; number < count; ++number) {
        threads.emplace_back([&, number] {
            asio::io_context io{1};
            run_until_done(io, work(shared, number));
        });
    }
    std::this_thread::sleep_for(time);
    stopping = true;
    for (auto& each : threads)
        each.join();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
    return static_cast<double>(pairs) / taken.count();
}

/// This part must run last, because colock locks its mutexes only after the process has started a thread.
void measure_threads(const options& settings, report& results)
{
    std::vector<double> one;
    std::vector<double> ratios;
    for (int round = 0; round < 5; ++round) {
        const std::chrono::duration<double> time(settings.seconds / 5);
        one.push_back(pairs_of_threads(1, time));
        ratios.push_back(pairs_of_threads(2, time) / one.back());
    }
    results.begin("Threads on one locker, each on keys of its own, median of 5 rounds");
    results.add({"one thread, pairs per second", median(one), "/s"});
    results.add({"two threads / one thread", median(ratios), "x", {}, kind::timed, 1.6});
}

} // namespace

void run_memory(const options& settings, report& results)
{
    // This part runs first, because a heap that other measurements have fragmented gives larger blocks than necessary.
    if (settings.wants("waiters"))
        measure_waiters(results);
    if (settings.wants("uncontended"))
        measure_uncontended(settings, results);
    if (settings.wants("verbs"))
        measure_verbs(settings, results);
    if (settings.wants("allocations"))
        measure_allocations(results);
    if (settings.wants("hand-off")) {
        measure_hand_off(results);
        measure_crowds(results);
    }
    const auto load = [&](std::size_t concurrency, std::size_t keys) {
        asio::io_context io{1};
        const colock::locker locker(colock::memory::make_adapter(io.get_executor()));
        measure_load(io, locker, concurrency, keys, settings.seconds, results);
    };
    if (settings.wants("load")) {
        load(many_waiters, 1);
        load(settings.concurrency, settings.keys);
    }
    if (settings.wants("threads"))
        measure_threads(settings, results);
}

} // namespace bench
