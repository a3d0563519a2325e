// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "load.hpp"

#include "alternation.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <random>
#include <string>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

struct load
{
    colock::locker locker;
    std::vector<std::string> keys;
    load_result result{};
    std::minstd_rand random{1};
    std::size_t running = 0;
    bool stopping = false;

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

    asio::awaitable<void> beat()
    {
        asio::steady_timer timer(co_await asio::this_coro::executor);
        auto before = thread_cpu_time();
        while (running > 0) {
            timer.expires_after(1ms);
            co_await timer.async_wait();
            const auto now = thread_cpu_time();
            result.longest_stall = std::max(result.longest_stall, now - before);
            before = now;
        }
    }

    asio::awaitable<void> run(std::size_t concurrency, std::chrono::nanoseconds time)
    {
        const auto executor = co_await asio::this_coro::executor;
        for (running = 0; running < concurrency; ++running)
            asio::co_spawn(executor, work(), asio::detached);
        // Starting them all is the load's own work, not a stall of the loop: the beat starts after it.
        co_await asio::post(asio::deferred);
        const auto start = std::chrono::steady_clock::now();
        const auto cpu = thread_cpu_time();
        const auto pairs = result.pairs;
        asio::co_spawn(executor, beat(), asio::detached);

        asio::steady_timer timer(executor, time);
        co_await timer.async_wait();
        result.elapsed = std::chrono::steady_clock::now() - start;
        result.cpu = thread_cpu_time() - cpu;
        result.pairs -= pairs;
        stopping = true;
        const auto counted = result;
        while (running > 0) {
            timer.expires_after(1ms);
            co_await timer.async_wait();
        }
        result = counted;
    }
};

} // namespace

load_result run_load(asio::io_context& io, const colock::locker& locker, std::size_t concurrency, std::size_t keys,
    std::chrono::nanoseconds time)
{
    load running{locker, {}};
    for (std::size_t i = 0; i < keys; ++i)
        running.keys.push_back("load:" + std::to_string(i));
    run_until_done(io, running.run(concurrency, time));
    io.restart();
    io.run();
    return running.result;
}

} // namespace bench
