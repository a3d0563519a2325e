// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis.hpp"

#include "../tools/built_backends.hpp"
#include "statistics.hpp"

#include "redis/scripts/scripts.hpp"

#include <colock/locker.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/redis/connection.hpp>
#include <boost/redis/request.hpp>
#include <boost/redis/response.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace asio = boost::asio;
namespace redis = boost::redis;

namespace bench {
namespace {

/// Counters of workers that run on several threads.
struct shared_progress
{
    std::atomic<bool> stopping{false};
    std::atomic<std::uint64_t> pairs{0};
    std::atomic<std::size_t> running{0};
};

/// Repeats pairs on the keys of one worker until `stopping` is set.
using threaded_worker = std::function<asio::awaitable<void>(shared_progress& counted, std::size_t number)>;

/// One of the compared programs. `start` returns its worker.
struct threaded_program
{
    std::string name;
    std::function<threaded_worker(asio::io_context& io)> start;
};

struct threaded_rate
{
    double pairs_per_second = 0.0;
    double cpu_us_per_pair = 0.0;
};

std::chrono::nanoseconds process_cpu_time() noexcept
{
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

/// Runs the workers in one context with `threads` threads, each worker on a strand of its own.
threaded_rate run_threads(const threaded_program& program, const workload& load, std::size_t threads)
{
    asio::io_context io(static_cast<int>(threads));
    auto open = asio::make_work_guard(io);
    const auto work = program.start(io);
    shared_progress counted;
    counted.running = load.in_flight;
    for (std::size_t number = 0; number < load.in_flight; ++number)
        asio::co_spawn(asio::make_strand(io), work(counted, number), [&](const std::exception_ptr& thrown) {
            if (thrown)
                std::rethrow_exception(thrown);
            if (--counted.running == 0)
                io.stop();
        });
    const auto cpu = process_cpu_time();
    const auto begun = std::chrono::steady_clock::now();
    {
        std::vector<std::jthread> pool;
        for (std::size_t each = 0; each < threads; ++each)
            pool.emplace_back([&] { io.run(); });
        std::this_thread::sleep_for(load.time);
        counted.stopping = true;
    }
    const auto pairs = static_cast<double>(counted.pairs);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begun;
    const auto used = static_cast<double>((process_cpu_time() - cpu).count());
    return {pairs / elapsed.count(), used / 1e3 / std::max(pairs, 1.0)};
}

threaded_program colock_program(const std::string& url, const workload& load)
{
    return {"colock", [&](asio::io_context& io) -> threaded_worker {
                const colock::locker shared(colock::make_adapter(io.get_executor(), url, tools::built_backends()),
                    colock::locker_options{.ttl = load.ttl});
                return [&load, shared](shared_progress& counted, std::size_t number) -> asio::awaitable<void> {
                    const auto locker = shared;
                    std::uint64_t done = 0;
                    for (auto key = number; !counted.stopping; key = load.next(key), ++done) {
                        auto held = co_await locker.acquire(workload::name(key));
                        co_await held.release();
                    }
                    counted.pairs += done;
                };
            }};
}

/// The driver's connection on a strand. A request is posted to this strand, and its result to the worker's strand.
struct shared_connection
{
    explicit shared_connection(asio::io_context& io)
        : strand(asio::make_strand(io)), connection(strand, redis::logger(redis::logger::level::disabled))
    {
    }

    template <class Response>
    auto exec(const redis::request& request, Response& response)
    {
        return asio::async_initiate<const asio::deferred_t&, void(boost::system::error_code, std::size_t)>(
            [this, &request, &response](auto handler) {
                asio::post(strand, [this, &request, &response, handler = std::move(handler)]() mutable {
                    connection.async_exec(request, response, std::move(handler));
                });
            },
            asio::deferred);
    }

    asio::any_io_executor strand;
    redis::connection connection;
};

/// The commands of run_driver().
threaded_program driver_program(const workload& load, const std::string& value)
{
    return {"driver's loop", [&](asio::io_context& io) -> threaded_worker {
                const auto shared = std::make_shared<shared_connection>(io);
                redis::config config;
                config.addr = {load.host, load.port};
                shared->connection.async_run(config, asio::bind_executor(shared->strand, asio::detached));
                return [&load, &value, shared](shared_progress& counted, std::size_t number) -> asio::awaitable<void> {
                    const auto kept = shared;
                    const auto& script = colock::redis::detail::scripts::get().release;
                    redis::request acquire;
                    redis::request release;
                    redis::response<std::string, std::int64_t> granted;
                    redis::response<std::int64_t> released;
                    std::uint64_t done = 0;
                    for (auto key = number; !counted.stopping; key = load.next(key), ++done) {
                        const auto name = "{colock}:" + workload::name(key);
                        acquire.clear();
                        acquire.push("SET", name, value, "NX", "PX", load.ttl.count());
                        acquire.push("INCR", "{colock}#fence");
                        co_await kept->exec(acquire, granted);
                        release.clear();
                        release.push("EVALSHA", script.digest(), 1, name, value.substr(0, 32));
                        co_await kept->exec(release, released);
                    }
                    counted.pairs += done;
                };
            }};
}

/// Posts to the strand of a connection and back, twice for each pair, without a server.
threaded_program posts_program(const workload& load)
{
    return {"posts through strands", [&](asio::io_context& io) -> threaded_worker {
                const auto home = asio::make_strand(io);
                return [&load, home](shared_progress& counted, std::size_t number) -> asio::awaitable<void> {
                    const auto there = home;
                    const auto here = co_await asio::this_coro::executor;
                    std::uint64_t done = 0;
                    for (auto key = number; !counted.stopping; key = load.next(key), ++done) {
                        for (int half = 0; half < 2; ++half) {
                            co_await asio::post(asio::bind_executor(there, asio::use_awaitable));
                            co_await asio::post(asio::bind_executor(here, asio::use_awaitable));
                        }
                    }
                    counted.pairs += done;
                };
            }};
}

} // namespace

void measure_redis_threads(const options& settings, const std::string& value, report& results)
{
    auto load = workload_of(redis_scheme, settings);
    constexpr std::size_t rounds = 5;
    load.time = std::chrono::nanoseconds(static_cast<std::int64_t>(settings.seconds * 1e9 / rounds));
    const std::array programs{posts_program(load), driver_program(load, value), colock_program(settings.backend, load)};
    for (const std::size_t in_flight : {64U, 1000U}) {
        load.in_flight = in_flight;
        load.keys = in_flight * 100;
        std::array<std::array<std::vector<double>, 2>, programs.size()> cpu;
        std::array<std::vector<double>, programs.size()> ratios;
        std::array<std::vector<double>, programs.size()> speed_ratios;
        for (std::size_t round = 0; round < rounds; ++round) {
            for (std::size_t each = 0; each < programs.size(); ++each) {
                const auto one = run_threads(programs[each], load, 1);
                const auto two = run_threads(programs[each], load, 2);
                cpu[each][0].push_back(one.cpu_us_per_pair);
                cpu[each][1].push_back(two.cpu_us_per_pair);
                ratios[each].push_back(two.cpu_us_per_pair / one.cpu_us_per_pair);
                speed_ratios[each].push_back(two.pairs_per_second / one.pairs_per_second);
            }
        }
        results.begin("Redis: a context with one and with two threads, " + std::to_string(in_flight) +
                      " in flight, median of " + std::to_string(rounds) + " rounds");
        for (std::size_t each = 0; each < programs.size(); ++each) {
            const auto& name = programs[each].name;
            results.add({name + ", CPU per pair with one thread", median(cpu[each][0]), "us"});
            results.add({name + ", CPU per pair with two threads", median(cpu[each][1]), "us"});
            measurement ratio{name + ", CPU with two threads / one thread", median(ratios[each]), "x"};
            if (name == "colock")
                ratio.limit = 1.4;
            results.add(ratio);
            results.add({name + ", pairs with two threads / one thread", median(speed_ratios[each]), "x"});
        }
    }
}

} // namespace bench
