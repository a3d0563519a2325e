// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis.hpp"

#include "../tools/built_backends.hpp"
#include "alternation.hpp"
#include "group_waits.hpp"
#include "statistics.hpp"

#include <colock/locker.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace asio = boost::asio;

namespace bench {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t keys_of_group = 8;

std::vector<std::string> group_keys()
{
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < keys_of_group; ++i)
        keys.push_back(workload::name(i));
    return keys;
}

double microseconds(clock::duration span)
{
    return std::chrono::duration<double, std::micro>(span).count();
}

/// Durations of the acquires only; the releases cost the same in both cases.
struct acquire_times
{
    std::vector<double> together;
    std::vector<double> alone;
    std::vector<double> one_by_one;
    std::vector<double> ratios;
};

asio::awaitable<void> acquire_alternately(colock::locker locker, std::chrono::nanoseconds time, acquire_times& found)
{
    const auto keys = group_keys();
    const auto warm = clock::now() + time / 4;
    for (const auto end = clock::now() + time; clock::now() < end;) {
        auto began = clock::now();
        auto group = co_await locker.acquire_all(keys);
        const auto together = clock::now() - began;
        co_await group.release();
        began = clock::now();
        auto one = co_await locker.acquire(keys.front());
        const auto alone = clock::now() - began;
        co_await one.release();
        std::vector<colock::lock> locks;
        began = clock::now();
        for (const auto& key : keys)
            locks.push_back(co_await locker.acquire(key));
        const auto one_by_one = clock::now() - began;
        for (auto& each : locks)
            co_await each.release();
        if (clock::now() < warm)
            continue;
        found.together.push_back(microseconds(together));
        found.alone.push_back(microseconds(alone));
        found.one_by_one.push_back(microseconds(one_by_one));
        found.ratios.push_back(found.one_by_one.back() / found.together.back());
    }
}

} // namespace

void measure_redis_groups(const options& settings, report& results)
{
    results.begin("Redis: acquire_all of 8 keys, alternating with eight single acquires");
    asio::io_context io{1};
    acquire_times times;
    colock::locker_stats counted;
    {
        const colock::locker locker(colock::make_adapter(io.get_executor(), settings.backend, tools::built_backends()));
        run_until_done(io,
            acquire_alternately(locker,
                std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(settings.seconds)),
                times));
        counted = locker.stats();
    }
    results.add({"acquire_all, p50", median(times.together), "us"});
    results.add({"one acquire, p50", median(times.alone), "us"});
    results.add({"eight acquires, p50", median(times.one_by_one), "us"});
    results.add({"acquire_all / one acquire", median(times.together) / median(times.alone), "x"});
    // Each group is granted by its first attempt.
    results.add({"attempts for each grant", static_cast<double>(counted.attempts) / static_cast<double>(counted.grants),
        "", 1.0, kind::counted});
    measurement ratio{"eight acquires / acquire_all", median(times.ratios), "x"};
    ratio.lower_limit = 4.0;
    results.add(ratio);
    measure_group_waits(settings.backend, settings, results);
}

} // namespace bench
