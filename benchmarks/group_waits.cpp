// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "group_waits.hpp"

#include "../tools/built_backends.hpp"
#include "alternation.hpp"
#include "statistics.hpp"

#include <colock/locker.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t key_count = 4;
constexpr std::size_t streams_of_key = 2;
constexpr auto hold_time = 1ms;

double milliseconds(std::chrono::nanoseconds span)
{
    return std::chrono::duration<double, std::milli>(span).count();
}

asio::awaitable<void> sleep(clock::duration span)
{
    asio::steady_timer timer(co_await asio::this_coro::executor, span);
    co_await timer.async_wait();
}

struct state
{
    bool stop = false;
    std::size_t running = 0;
};

/// Acquires, holds and releases repeatedly. Records the waiting time of each acquire.
template <class Acquire>
asio::awaitable<void> take_turns(state& now, Acquire acquire, clock::duration pause, histogram& waits)
{
    ++now.running;
    while (!now.stop) {
        const auto began = clock::now();
        {
            auto held = co_await acquire();
            waits.record(clock::now() - began);
            co_await sleep(hold_time);
            co_await held.release();
        }
        co_await sleep(pause);
    }
    --now.running;
}

asio::awaitable<void> end_after(state& now, std::chrono::nanoseconds time)
{
    co_await sleep(std::chrono::duration_cast<clock::duration>(time));
    now.stop = true;
    while (now.running > 0)
        co_await sleep(1ms);
}

} // namespace

void measure_group_waits(const std::string& backend, const options& settings, report& results)
{
    asio::io_context io{1};
    const colock::locker ours(colock::make_adapter(io.get_executor(), backend, tools::built_backends()));
    const colock::locker others(colock::make_adapter(io.get_executor(), backend, tools::built_backends()));
    std::vector<std::string> keys;
    for (std::size_t n = 0; n < key_count; ++n)
        keys.push_back("group-waits:" + std::to_string(n));
    std::array<histogram, key_count> singles;
    histogram groups;
    // The measurements alternate, so that changes of the machine's load affect both.
    constexpr int rounds = 4;
    const std::chrono::nanoseconds time(static_cast<std::int64_t>(settings.seconds * 1e9 / rounds));
    for (int round = 0; round < 2 * rounds; ++round) {
        state now;
        histogram unused;
        const auto start = [&](auto acquire, clock::duration pause, histogram& waits) {
            asio::co_spawn(io, take_turns(now, acquire, pause, waits), asio::detached);
        };
        for (std::size_t n = 0; n < streams_of_key * key_count; ++n)
            start([&, n] { return others.acquire(keys[n % key_count]); }, 0ms, unused);
        if (round % 2 == 0) {
            for (std::size_t n = 0; n < key_count; ++n)
                start([&, n] { return ours.acquire(keys[n]); }, 2ms, singles[n]);
        } else {
            start([&] { return ours.acquire_all(keys); }, 2ms, groups);
        }
        run_until_done(io, end_after(now, time));
    }
    const auto of_slowest = [&](double fraction) {
        double slowest = 0.0;
        for (const auto& each : singles)
            slowest = std::max(slowest, milliseconds(each.quantile(fraction)));
        return slowest;
    };
    results.begin("acquire_all of " + std::to_string(key_count) + " keys that " + std::to_string(streams_of_key) +
                  " callers each of another locker use");
    results.fact("group waits", std::to_string(groups.total()) + " groups");
    for (const auto& [name, fraction] : {std::pair("p50", 0.5), std::pair("p99", 0.99)}) {
        const auto group = milliseconds(groups.quantile(fraction)), single = of_slowest(fraction);
        results.add({std::string("wait of the group, ") + name, group, "ms"});
        results.add({std::string("wait of a single acquire of the slowest key, ") + name, single, "ms"});
        results.add({std::string("group / (keys * single), ") + name,
            single > 0.0 ? group / (static_cast<double>(key_count) * single) : 0.0, "x"});
    }
}

} // namespace bench
