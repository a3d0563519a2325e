// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "load.hpp"

#include "alternation.hpp"
#include "statistics.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

struct load_result
{
    std::uint64_t pairs = 0;
    std::chrono::nanoseconds elapsed{0};
    /// Time from the call of `acquire` to the grant.
    histogram latency;
    /// CPU time of the event loop's thread.
    std::chrono::nanoseconds cpu{0};
    /// Longest CPU time that the loop spent between two expiries of a 1 ms timer.
    std::chrono::nanoseconds longest_stall{0};
};

struct load
{
    colock::locker locker;
    std::vector<std::string> keys;
    load_result result{};
    std::minstd_rand random{1};
    std::size_t running = 0;
    bool stopping = false;
    bool is_measuring = false;

    asio::awaitable<void> work()
    {
        std::uniform_int_distribution<std::size_t> pick(0, keys.size() - 1);
        while (!stopping) {
            const std::string& key = keys[pick(random)];
            const auto start = std::chrono::steady_clock::now();
            colock::lock lock = co_await locker.acquire(key);
            result.latency.record(std::chrono::steady_clock::now() - start);
            co_await asio::post(asio::deferred);
            co_await lock.release();
            ++result.pairs;
        }
        --running;
    }

    asio::awaitable<void> measure_stalls()
    {
        asio::steady_timer timer(co_await asio::this_coro::executor);
        auto before = thread_cpu_time();
        for (is_measuring = true; running > 0;) {
            timer.expires_after(1ms);
            co_await timer.async_wait();
            const auto now = thread_cpu_time();
            result.longest_stall = std::max(result.longest_stall, now - before);
            before = now;
        }
        is_measuring = false;
    }

    asio::awaitable<void> run(std::size_t concurrency, std::chrono::nanoseconds time)
    {
        const auto executor = co_await asio::this_coro::executor;
        for (running = 0; running < concurrency; ++running)
            asio::co_spawn(executor, work(), asio::detached);
        // The start of all coroutines is work of the benchmark, not a stall of the loop. So the timer starts
        // afterwards.
        co_await asio::post(asio::deferred);
        const auto start = std::chrono::steady_clock::now();
        const auto cpu = thread_cpu_time();
        const auto pairs = result.pairs;
        asio::co_spawn(executor, measure_stalls(), asio::detached);

        asio::steady_timer timer(executor, time);
        co_await timer.async_wait();
        result.elapsed = std::chrono::steady_clock::now() - start;
        result.cpu = thread_cpu_time() - cpu;
        result.pairs -= pairs;
        stopping = true;
        // The result excludes the pairs that the coroutines complete while they end.
        const auto measured = result;
        while (running > 0 || is_measuring) {
            timer.expires_after(1ms);
            co_await timer.async_wait();
        }
        result = measured;
    }
};

load_result run_load(asio::io_context& io, const colock::locker& locker, std::size_t concurrency, std::size_t keys,
    std::chrono::nanoseconds time)
{
    load running{locker, {}};
    for (std::size_t i = 0; i < keys; ++i)
        running.keys.push_back("load:" + std::to_string(i));
    run_until_done(io, running.run(concurrency, time));
    return running.result;
}

} // namespace

void measure_load(asio::io_context& io, const colock::locker& locker, std::size_t concurrency, std::size_t keys,
    double seconds, report& results)
{
    results.begin("Load: " + std::to_string(concurrency) + " in flight on " + std::to_string(keys) +
                  (keys == 1 ? " key" : " keys") + ", each holds a lock for one iteration of the event loop");
    const auto result =
        run_load(io, locker, concurrency, keys, std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
    const auto pairs = static_cast<double>(std::max<std::uint64_t>(result.pairs, 1));
    const auto microseconds = [](std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e3; };
    results.add({"pairs per second", pairs * 1e9 / static_cast<double>(result.elapsed.count()), "/s"});
    results.add({"CPU per pair", static_cast<double>(result.cpu.count()) / pairs, "ns"});
    results.add({"acquire, p50", microseconds(result.latency.quantile(0.5)), "us"});
    results.add({"acquire, p99", microseconds(result.latency.quantile(0.99)), "us"});
    results.add({"acquire, p999", microseconds(result.latency.quantile(0.999)), "us"});
    results.add(
        {"longest loop stall (CPU between two beats of 1 ms)", microseconds(result.longest_stall) / 1e3, "ms", 5.0});
}

} // namespace bench
