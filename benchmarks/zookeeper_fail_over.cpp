// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "alternation.hpp"
#include "statistics.hpp"
#include "zookeeper.hpp"

#include "integration/zookeeper/ensemble.hpp"

#include <colock/locker.hpp>
#include <colock/zookeeper/adapter.hpp>

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
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

using clock = std::chrono::steady_clock;

constexpr const char* key = "fail-over";
constexpr std::size_t waiters = 5;

double since(clock::time_point start, clock::time_point end)
{
    return std::chrono::duration<double, std::milli>(end - start).count();
}

/// Three servers, and lockers with their own sessions that wait for each other.
class fail_over
{
public:
    fail_over()
    {
        for (std::size_t i = 0; i <= waiters; ++i)
            all_.emplace_back(colock::zookeeper::make_adapter(
                io_.get_executor(), {.url = servers_.url(i % servers_.size), .server_tick = 500ms}));
    }

    /// Kills the leader while one locker holds the lock and the others wait. The holder releases the lock as soon as a
    /// server accepts the request.
    void run()
    {
        running_ = all_.size();
        granted_.clear();
        for (const auto& each : all_)
            asio::co_spawn(io_, hold_until_fail_over(*this, each), asio::detached);
        run_until_done(io_, wait_until_queued(*this));
        const auto leader = servers_.leader();
        servers_[leader].kill();
        const auto died = clock::now();
        auto answers = std::async(std::launch::async, [this] {
            // leader() returns as soon as there is a new leader.
            static_cast<void>(servers_.leader());
            return clock::now();
        });
        leader_died_ = true;
        run_until_done(io_, wait_until_done(*this));
        const auto answered = answers.get();
        elections.push_back(since(died, answered));
        next_grants.push_back(since(answered, granted_.at(1)));
        all_grants.push_back(since(answered, granted_.back()));
        leader_died_ = false;
        servers_.restore();
    }

    /// Durations in milliseconds.
    std::vector<double> elections{};
    std::vector<double> next_grants{};
    std::vector<double> all_grants{};

private:
    static asio::awaitable<void> hold_until_fail_over(fail_over& self, colock::locker locker)
    {
        colock::lock held = co_await locker.acquire(key);
        self.granted_.push_back(clock::now());
        while (!self.leader_died_)
            co_await short_pause();
        // The request is sent when a server is reachable again.
        co_await held.release();
        --self.running_;
    }
    /// Waits until all lockers are in the queue. A locker that was busy twice has set its watch.
    static asio::awaitable<void> wait_until_queued(fail_over& self)
    {
        std::vector<std::uint64_t> before;
        for (const auto& each : self.all_)
            before.push_back(each.stats().busy);
        const auto waiting = [&] {
            std::size_t count = 0;
            for (std::size_t i = 0; i < before.size(); ++i)
                count += self.all_[i].stats().busy >= before[i] + 2 ? 1U : 0U;
            return count;
        };
        while (self.granted_.empty() || waiting() < waiters)
            co_await short_pause();
    }
    static asio::awaitable<void> wait_until_done(fail_over& self)
    {
        while (self.running_ > 0)
            co_await short_pause();
    }
    static asio::awaitable<void> short_pause()
    {
        asio::steady_timer pause(co_await asio::this_coro::executor, 1ms);
        co_await pause.async_wait(asio::use_awaitable);
    }

    colock::testing::zookeeper_ensemble servers_;
    asio::io_context io_{1};
    std::vector<colock::locker> all_;
    std::size_t running_ = 0;
    bool leader_died_ = false;
    std::vector<clock::time_point> granted_;
};

} // namespace

void measure_zookeeper_fail_over(report& results)
{
    constexpr int times = 9;
    fail_over all;
    for (int i = 0; i < times; ++i)
        all.run();
    const auto name = "of " + std::to_string(times);
    results.begin(
        "ZooKeeper: the leader of three servers dies, with one holder and " + std::to_string(waiters) + " waiters");
    results.add({"until another answers as leader, median " + name, median(all.elections), "ms"});
    results.add({"from there to the next grant, median", median(all.next_grants), "ms", 1000.0});
    results.add({"from there to the next grant, worst", std::ranges::max(all.next_grants), "ms", 1000.0});
    results.add({"from there to the last grant, median", median(all.all_grants), "ms"});
}

} // namespace bench
