// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis.hpp"

#include "alternation.hpp"
#include "group_waits.hpp"
#include "statistics.hpp"

#include <colock/connect.hpp>
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

/// Times of the acquires only; the releases cost the same in both cases.
struct found_times
{
    std::vector<double> average_of;
    std::vector<double> alone;
    std::vector<double> one_by_one;
    std::vector<double> ratios;
};

asio::awaitable<void> take_turns(colock::locker locker, std::chrono::nanoseconds time, found_times& found)
{
    const auto keys = group_keys();
    const auto warm = clock::now() + time / 4;
    for (const auto end = clock::now() + time; clock::now() < end;) {
        auto began = clock::now();
        auto group = co_await locker.acquire_all(keys);
        const auto average_of = clock::now() - began;
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
        found.average_of.push_back(microseconds(average_of));
        found.alone.push_back(microseconds(alone));
        found.one_by_one.push_back(microseconds(one_by_one));
        found.ratios.push_back(found.one_by_one.back() / found.average_of.back());
    }
}

} // namespace

void measure_redis_groups(const options& settings, report& found)
{
    found.begin("Redis: acquire_all of 8 keys, and eight acquires one after the other, in turn");
    asio::io_context io{1};
    found_times times;
    colock::locker_stats counted;
    {
        const colock::locker locker(colock::make_adapter(io.get_executor(), settings.backend));
        run_until_done(io,
            take_turns(locker,
                std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(settings.seconds)),
                times));
        counted = locker.stats();
    }
    found.add({"acquire_all, p50", median(times.average_of), "us"});
    found.add({"one acquire, p50", median(times.alone), "us"});
    found.add({"eight acquires, p50", median(times.one_by_one), "us"});
    found.add({"acquire_all / one acquire", median(times.average_of) / median(times.alone), "x"});
    // Each group is granted by its first attempt.
    found.add({"attempts for each grant", static_cast<double>(counted.attempts) / static_cast<double>(counted.grants),
        "", 1.0, kind::counted});
    measurement ratio{"eight acquires / acquire_all", median(times.ratios), "x"};
    ratio.lower_limit = 4.0;
    found.add(ratio);
    measure_group_waits(settings.backend, settings, found);
}

} // namespace bench
