// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fail_over.hpp"

#include "alternation.hpp"
#include "statistics.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <cstdint>
#include <future>
#include <utility>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {

namespace {

using clock = std::chrono::steady_clock;

double milliseconds_between(clock::time_point start, clock::time_point end)
{
    return std::chrono::duration<double, std::milli>(end - start).count();
}

asio::awaitable<void> pause(clock::duration span)
{
    asio::steady_timer timer(co_await asio::this_coro::executor, span);
    co_await timer.async_wait(asio::use_awaitable);
}

} // namespace

void fail_over::run(std::vector<colock::locker> lockers, const std::function<void()>& kill,
    const std::function<void()>& await_successor)
{
    running_ = lockers.size();
    server_died_ = false;
    granted_.clear();
    for (const auto& each : lockers)
        asio::co_spawn(io_, hold_until_server_died(*this, each), asio::detached);
    run_until_done(io_, wait_until_queued(*this, lockers));
    kill();
    const auto died = clock::now();
    auto succession = std::async(std::launch::async, [&] {
        await_successor();
        return clock::now();
    });
    server_died_ = true;
    run_until_done(io_, [](fail_over& self) -> asio::awaitable<void> {
        while (self.running_ > 0)
            co_await pause(1ms);
    }(*this));
    const auto succeeded = succession.get();
    successions_.push_back(milliseconds_between(died, succeeded));
    next_grants_.push_back(milliseconds_between(succeeded, granted_.at(1)));
    last_grants_.push_back(milliseconds_between(succeeded, granted_.back()));
}

void fail_over::add_rows(report& results, const std::string& first, std::optional<double> median_limit,
    std::optional<double> worst_limit) const
{
    results.add({first + ", median of " + std::to_string(successions_.size()), median(successions_), "ms"});
    results.add({"from there to the next grant, median", median(next_grants_), "ms", median_limit});
    results.add({"from there to the next grant, worst", std::ranges::max(next_grants_), "ms", worst_limit});
    results.add({"from there to the last grant, median", median(last_grants_), "ms"});
}

asio::awaitable<void> fail_over::hold_until_server_died(fail_over& self, colock::locker locker)
{
    colock::lock held = co_await locker.acquire(key);
    self.granted_.push_back(clock::now());
    while (!self.server_died_)
        co_await pause(1ms);
    // The request is sent when a server is reachable again.
    co_await held.release();
    --self.running_;
}

asio::awaitable<void> fail_over::wait_until_queued(fail_over& self, const std::vector<colock::locker>& lockers)
{
    std::vector<std::uint64_t> before;
    for (const auto& each : lockers)
        before.push_back(each.stats().busy);
    const auto waiting = [&] {
        std::size_t count = 0;
        for (std::size_t i = 0; i < before.size(); ++i)
            count += lockers[i].stats().busy >= before[i] + self.busy_answers_ ? 1U : 0U;
        return count;
    };
    while (self.granted_.empty() || waiting() < waiters)
        co_await pause(1ms);
    co_await pause(200ms);
}

} // namespace bench
