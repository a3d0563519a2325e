// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo.hpp"

#include "../tools/built_backends.hpp"
#include "alternation.hpp"
#include "group_waits.hpp"
#include "held_locks.hpp"
#include "mongo/driver/document.hpp"
#include "mongo/driver/reply_validation.hpp"
#include "peers.hpp"

#include <colock/locker.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

namespace mg = colock::mongo::detail;

/// Lower limit for one number of workers: the rate relative to locco's.
struct required_ratio
{
    std::size_t in_flight;
    double min_locco_ratio;
};

double mongodb_cpu_us(const workload&)
{
    return process_cpu_us("COLOCK_TEST_MONGODB_ID");
}

chart run_uncontended(const options& settings, report& results)
{
    workload load = workload_of(mongo_scheme, settings);
    std::vector<candidate> candidates{
        {"colock", candidate::kind::ours,
            [&](const workload& slice_load) {
                return run_ours(settings.backend, slice_load, colock::lock_mode::exclusive);
            }},
        {"libmongoc on threads", candidate::kind::driver, run_driver_threads},
    };
    for (candidate& each : read_programs(settings.peers, results))
        candidates.push_back(std::move(each));
    chart drawn{.title = "MongoDB: uncontended acquire+release, as multiples of locco's rate",
        .bars = {},
        .unit = "x",
        .limit = {}};
    for (const required_ratio& each : {required_ratio{1, 2.7}, required_ratio{8, 2.5}, required_ratio{32, 2.0}}) {
        load.in_flight = each.in_flight;
        load.keys = each.in_flight * 10;
        run_rounds(load, candidates, settings.rounds, mongodb_cpu_us);
        results.begin("MongoDB: " + std::to_string(load.in_flight) + " in flight, each on keys of its own, " +
                      describe_rounds(settings.rounds));
        for (const candidate& one : candidates)
            results.add({one.name + ", pairs per second", speed(one), "/s"});
        measurement driver_comparison{"colock / libmongoc on threads", ratio(candidates[0], candidates[1]), "x"};
        driver_comparison.lower_limit = 0.9;
        results.add(driver_comparison);
        for (const candidate& one : candidates) {
            if (one.is != candidate::kind::peer)
                continue;
            measurement comparison{"colock / " + one.name, ratio(candidates[0], one), "x"};
            comparison.lower_limit = each.min_locco_ratio;
            results.add(comparison);
            for (const candidate& bar : candidates)
                drawn.bars.emplace_back(std::to_string(load.in_flight) + " in flight, " + bar.name, ratio(bar, one));
        }
        for (const candidate& one : candidates)
            add_costs(one, results, one.is == candidate::kind::ours ? std::optional(100.0) : std::nullopt);
    }
    return drawn;
}

/// Measures the time from each release to the grant of a waiter with its own connections.
asio::awaitable<void> hand_off(
    colock::locker ours, colock::locker theirs, std::size_t count, std::vector<double>& milliseconds)
{
    asio::steady_timer pause(co_await asio::this_coro::executor);
    for (std::size_t i = 0; i < count; ++i) {
        auto held = co_await ours.acquire("hand-off");
        std::chrono::steady_clock::time_point granted;
        bool done = false;
        asio::co_spawn(
            pause.get_executor(),
            [](colock::locker locker, std::chrono::steady_clock::time_point& at,
                bool& is_done) -> asio::awaitable<void> {
                auto next = co_await locker.acquire("hand-off");
                at = std::chrono::steady_clock::now();
                co_await next.release();
                is_done = true;
            }(theirs, granted, done),
            asio::detached);
        // The waiter has checked the lock twice, and now waits for the event.
        const auto looked = theirs.stats().busy + 2;
        while (theirs.stats().busy < looked) {
            pause.expires_after(1ms);
            co_await pause.async_wait();
        }
        pause.expires_after(5ms);
        co_await pause.async_wait();
        const auto begun = std::chrono::steady_clock::now();
        co_await held.release();
        while (!done) {
            pause.expires_after(1ms);
            co_await pause.async_wait();
        }
        milliseconds.push_back(std::chrono::duration<double, std::milli>(granted - begun).count());
    }
}

void measure_hand_off(const options& settings, report& results)
{
    asio::io_context io{1};
    const colock::locker ours(colock::make_adapter(io.get_executor(), settings.backend, tools::built_backends()));
    const colock::locker theirs(colock::make_adapter(io.get_executor(), settings.backend, tools::built_backends()));
    std::vector<double> all;
    run_until_done(io, hand_off(ours, theirs, settings.seconds >= 0.5 ? 200 : 10, all));
    std::ranges::sort(all);
    results.begin("MongoDB: from a release to the grant of a waiter with connections of its own");
    measurement middle{"median", all[all.size() / 2], "ms"};
    measurement worst{"99 of 100 within", all[all.size() * 99 / 100], "ms"};
    if (settings.seconds >= 0.5) {
        middle.limit = 5.0;
        worst.limit = 50.0;
    }
    results.add(middle);
    results.add(worst);
}

/// Counts the commands of many waiters for one key: their number per release must not depend on the number of waiters.
void measure_contention(const options& settings, report& results)
{
    asio::io_context io{1};
    const colock::locker ours(colock::make_adapter(io.get_executor(), settings.backend, tools::built_backends()));
    const colock::locker theirs(colock::make_adapter(io.get_executor(), settings.backend, tools::built_backends()));
    constexpr std::size_t waiters = 1000;
    std::size_t granted = 0;
    run_until_done(
        io, [](colock::locker holder, colock::locker waiting, std::size_t& grant_count) -> asio::awaitable<void> {
            auto held = co_await holder.acquire("queue");
            for (std::size_t i = 0; i < waiters; ++i)
                asio::co_spawn(
                    co_await asio::this_coro::executor,
                    [](colock::locker locker, std::size_t& count) -> asio::awaitable<void> {
                        auto mine = co_await locker.acquire("queue");
                        co_await mine.release();
                        ++count;
                    }(waiting, grant_count),
                    asio::detached);
            asio::steady_timer pause(co_await asio::this_coro::executor);
            while (waiting.stats().waiting < waiters) {
                pause.expires_after(1ms);
                co_await pause.async_wait();
            }
            co_await held.release();
            while (grant_count < waiters) {
                pause.expires_after(1ms);
                co_await pause.async_wait();
            }
        }(ours, theirs, granted));
    const auto counted = theirs.stats();
    results.begin("MongoDB: 1000 waiters of one process on one key");
    results.add({"attempts for each grant", static_cast<double>(counted.attempts) / static_cast<double>(counted.grants),
        "", 1.2, kind::counted});
}

/// Acquires and releases a number of locks on `keys` keys at the same time.
asio::awaitable<void> take_all(
    colock::locker locker, colock::acquire_options options, std::size_t keys, std::size_t& left)
{
    constexpr std::size_t locks = 300;
    left = locks;
    for (std::size_t i = 0; i < locks; ++i)
        asio::co_spawn(
            co_await asio::this_coro::executor,
            [](colock::locker one, std::string key, colock::acquire_options reader_options,
                std::size_t& open) -> asio::awaitable<void> {
                auto held = co_await one.acquire(std::move(key), std::move(reader_options));
                co_await held.release();
                --open;
            }(locker, "readers-" + std::to_string(i % keys), options, left),
            asio::detached);
    asio::steady_timer pause(co_await asio::this_coro::executor);
    while (left > 0) {
        pause.expires_after(1ms);
        co_await pause.async_wait();
    }
}

/// Checks that the cost of a reader does not grow with the number of readers.
void measure_readers(const options& settings, report& results)
{
    asio::io_context io{1};
    const colock::locker ours(colock::make_adapter(io.get_executor(), settings.backend, tools::built_backends()));
    const auto shortest = [&](const colock::acquire_options& options, std::size_t keys) {
        auto best = std::chrono::steady_clock::duration::max();
        for (int i = 0; i < 5; ++i) {
            std::size_t left = 0;
            const auto begun = std::chrono::steady_clock::now();
            run_until_done(io, take_all(ours, options, keys, left));
            best = std::min(best, std::chrono::steady_clock::now() - begun);
        }
        return std::chrono::duration<double, std::milli>(best).count();
    };
    const auto exclusive = shortest({}, 300);
    const auto shared = shortest({.mode = colock::lock_mode::shared}, 1);
    const auto semaphore = shortest({.mode = colock::lock_mode::shared, .max_holders = 300}, 1);
    results.begin("MongoDB: 300 locks are acquired and released at the same time");
    results.add({"exclusive, each on a key of its own", exclusive, "ms"});
    results.add({"shared, on one key", shared, "ms"});
    results.add({"holders of a semaphore", semaphore, "ms"});
    results.add({"shared / exclusive", shared / exclusive, "x", 2.0});
    results.add({"semaphore / exclusive", semaphore / exclusive, "x", 2.0});
}

/// The validation of replies to a `findAndModify` and to a `find`, before libmongoc parses them.
void measure_validation(report& results)
{
    const auto repeated = [](std::size_t count, const std::string& json) {
        std::string all;
        for (std::size_t i = 0; i < count; ++i)
            (all += i == 0 ? "" : ",") += json;
        return '[' + all + ']';
    };
    const auto lock_with = [&](std::size_t holders) {
        return R"({"_id":"key","t":null,"x":0,"f":1,"o":{"host":"h","owner":"o"},"h":)" +
               repeated(holders, R"({"t":"0123456789abcdef0123456789abcdef","x":{"$numberLong":"1"},)"
                                 R"("f":{"$numberLong":"1"},"a":1,"r":null,"e":1})") +
               '}';
    };
    const auto measure = [](const std::string& json) {
        const auto body = mg::document::from_json(json);
        std::vector<std::byte> message(mg::message_header::size + 5 + body.get()->len);
        message[12] = std::byte{0xdd};
        message[13] = std::byte{0x07};
        std::copy_n(reinterpret_cast<const std::byte*>(bson_get_data(body.get())), body.get()->len,
            message.begin() + mg::message_header::size + 5);
        // The number of bytes is about the same for all replies.
        const auto count = 20'000'000 / message.size();
        const auto begun = std::chrono::steady_clock::now();
        for (std::size_t i = 0; i < count; ++i) {
            std::span<std::byte> whole(message);
            if (mg::validate_body(whole))
                throw std::logic_error("a valid reply was refused");
        }
        return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begun).count() /
               static_cast<double>(count);
    };
    const auto changed = [&](std::size_t holders) {
        return measure(
            R"({"lastErrorObject":{"n":1,"updatedExisting":true},"value":)" + lock_with(holders) + R"(,"ok":1.0})");
    };
    results.begin("MongoDB: validation of a reply");
    results.add({"exclusive lock", changed(0), "us", 2.0});
    results.add({"20 shared holders", changed(20), "us"});
    results.add({"list of 1000 locks",
        measure(R"({"cursor":{"id":0,"ns":"a.b","firstBatch":)" + repeated(1000, lock_with(1)) + R"(},"ok":1.0})"),
        "us"});
}

} // namespace

std::optional<chart> run_mongo(const options& settings, report& results)
{
    const auto at = workload_at(mongo_scheme, settings.backend);
    if (!at)
        return std::nullopt;
    chart drawn;
    if (!settings.peers.empty() && settings.wants("uncontended"))
        drawn = run_uncontended(settings, results);
    if (settings.wants("hand-off"))
        measure_hand_off(settings, results);
    if (settings.wants("waiters"))
        measure_contention(settings, results);
    if (settings.wants("readers"))
        measure_readers(settings, results);
    if (settings.wants("groups"))
        measure_group_waits(settings.backend, settings, results);
    if (settings.wants("memory")) {
        measure_mongo_memory(settings, results);
        measure_validation(results);
    }
    // A short run is made for the counted numbers, and leaves long measurements out.
    if (settings.seconds >= 0.5 && at->host == "127.0.0.1" && settings.wants("stalls")) {
        measure_held_locks(
            "MongoDB",
            [](std::uint16_t port) {
                return "mongodb://127.0.0.1:" + std::to_string(port) + "/?directConnection=true";
            },
            *at, settings, results);
    }
    return drawn;
}

} // namespace bench
