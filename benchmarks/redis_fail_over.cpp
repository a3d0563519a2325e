// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "alternation.hpp"
#include "redis.hpp"
#include "statistics.hpp"

#include "integration/redis_cluster/cluster.hpp"

#include <colock/locker.hpp>
#include <colock/redis/adapter.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

using clock = std::chrono::steady_clock;
using colock::testing::redis_cluster;

constexpr const char* key = "fail-over";
constexpr std::size_t waiters = 5;

double since(clock::time_point start, clock::time_point end)
{
    return std::chrono::duration<double, std::milli>(end - start).count();
}

/// A cluster, and lockers with their own connections that wait for each other.
class fail_over
{
public:
    fail_over()
    {
        for (std::size_t i = 0; i <= waiters; ++i)
            all_.emplace_back(colock::redis::make_adapter(io_.get_executor(), {.url = servers_.url()}));
    }

    /// Kills the master of the lock while one locker holds the lock and the others wait. The holder releases the lock
    /// as soon as a server accepts the request.
    void run()
    {
        running_ = all_.size();
        granted_.clear();
        for (const auto& each : all_)
            asio::co_spawn(io_, hold_until_fail_over(*this, each), asio::detached);
        run_until_done(io_, wait_until_queued(*this));
        const auto master = servers_.owner_of("colock:" + std::string(key));
        servers_.wait_for_replica(master);
        servers_.node(master).kill();
        const auto died = clock::now();
        auto promotion = std::async(std::launch::async, [&] {
            auto& replica = servers_.replica_of(master);
            while (!replica({"ROLE"}).starts_with("master"))
                std::this_thread::sleep_for(1ms);
            return clock::now();
        });
        master_died_ = true;
        run_until_done(io_, wait_until_done(*this));
        const auto promoted = promotion.get();
        promotions.push_back(since(died, promoted));
        next_grants.push_back(since(promoted, granted_.at(1)));
        all_grants.push_back(since(promoted, granted_.back()));
        master_died_ = false;
        servers_.node(master).start();
        servers_.wait_until_ok();
    }

    /// Durations in milliseconds.
    std::vector<double> promotions{};
    std::vector<double> next_grants{};
    std::vector<double> all_grants{};

private:
    static asio::awaitable<void> hold_until_fail_over(fail_over& self, colock::locker locker)
    {
        colock::lock held = co_await locker.acquire(key);
        self.granted_.push_back(clock::now());
        while (!self.master_died_)
            co_await pause(1ms);
        // The request is sent when a server is reachable again.
        co_await held.release();
        --self.running_;
    }
    /// Waits until all lockers wait for messages.
    static asio::awaitable<void> wait_until_queued(fail_over& self)
    {
        std::vector<std::uint64_t> before;
        for (const auto& each : self.all_)
            before.push_back(each.stats().busy);
        const auto waiting = [&] {
            std::size_t count = 0;
            for (std::size_t i = 0; i < before.size(); ++i)
                count += self.all_[i].stats().busy > before[i] ? 1U : 0U;
            return count;
        };
        while (self.granted_.empty() || waiting() < waiters)
            co_await pause(1ms);
        co_await pause(200ms);
    }
    static asio::awaitable<void> wait_until_done(fail_over& self)
    {
        while (self.running_ > 0)
            co_await pause(1ms);
    }
    static asio::awaitable<void> pause(clock::duration span)
    {
        asio::steady_timer timer(co_await asio::this_coro::executor, span);
        co_await timer.async_wait(asio::use_awaitable);
    }

    redis_cluster servers_{2s};
    asio::io_context io_{1};
    std::vector<colock::locker> all_;
    std::size_t running_ = 0;
    bool master_died_ = false;
    std::vector<clock::time_point> granted_;
};

} // namespace

void measure_redis_fail_over(report& results)
{
    constexpr int times = 20;
    fail_over all;
    for (int i = 0; i < times; ++i)
        all.run();
    const auto name = "of " + std::to_string(times);
    results.begin("Redis Cluster: a master dies, with one holder and " + std::to_string(waiters) + " waiters");
    results.add({"until its replica is promoted, median " + name, median(all.promotions), "ms"});
    results.add({"from there to the next grant, median", median(all.next_grants), "ms", 500.0});
    results.add({"from there to the next grant, worst", std::ranges::max(all.next_grants), "ms", 2000.0});
    results.add({"from there to the last grant, median", median(all.all_grants), "ms"});
}

} // namespace bench
