// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "forms.hpp"

#include "../tools/built_backends.hpp"
#include "peers.hpp"
#include "statistics.hpp"
#include "workload.hpp"

#include <colock/locker.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <functional>
#include <string>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

/// One acquire and release. Each worker repeats this step with keys that no other worker uses.
using step = std::function<asio::awaitable<void>(const std::string& key)>;

asio::awaitable<void> repeat(const workload& load, const step& one, progress& counted, std::size_t number)
{
    for (std::size_t key = number; !counted.stopping; key = load.next(key)) {
        co_await one(workload::name(key));
        ++counted.pairs;
    }
}

/// A way to acquire and release a lock, or the same work of Asio without a lock.
struct form
{
    std::string name;
    step work;
    /// CPU time of the event loop's thread for each pair, one entry per round.
    std::vector<double> cpu_us{};
};

std::vector<form> forms_of(const colock::locker& locker)
{
    return {
        {"acquire, release",
            [&locker](const std::string& key) -> asio::awaitable<void> {
                auto held = co_await locker.acquire(key);
                co_await held.release();
            }},
        {"with_lock, empty function",
            [&locker](const std::string& key) -> asio::awaitable<void> { co_await locker.with_lock(key, [] {}); }},
        {"with_lock, empty coroutine",
            [&locker](const std::string& key) -> asio::awaitable<void> {
                co_await locker.with_lock(key, []() -> asio::awaitable<void> { co_return; });
            }},
        {"acquire with total_time, release",
            [&locker](const std::string& key) -> asio::awaitable<void> {
                auto held = co_await locker.acquire(key, {.retry = colock::within(30s)});
                co_await held.release();
            }},
        {"async_acquire, async_release",
            [&locker](const std::string& key) -> asio::awaitable<void> {
                auto held = co_await locker.async_acquire(key);
                co_await held.async_release();
            }},
        {"async_acquire under cancel_after, release",
            [&locker](const std::string& key) -> asio::awaitable<void> {
                auto held = co_await locker.async_acquire(key, asio::cancel_after(30s));
                co_await held.release();
            }},
        {"Asio: post",
            [](const std::string&) -> asio::awaitable<void> {
                co_await asio::post(co_await asio::this_coro::executor, asio::deferred);
            }},
        {"Asio: post under cancel_after",
            [](const std::string&) -> asio::awaitable<void> {
                co_await asio::post(co_await asio::this_coro::executor, asio::cancel_after(30s, asio::deferred));
            }},
    };
}

} // namespace

void measure_forms(const options& settings, report& results)
{
    asio::io_context io{1};
    const colock::locker locker(colock::make_adapter(io.get_executor(), settings.backend, tools::built_backends()));
    workload load;
    load.in_flight = 1000;
    load.keys = load.in_flight * 100;
    load.time = std::chrono::nanoseconds(static_cast<std::int64_t>(settings.seconds * 1e9));
    auto forms = forms_of(locker);
    for (std::size_t round = 0; round < settings.rounds; ++round) {
        for (form& each : forms) {
            const auto reached = run_workers(io, load,
                [&](progress& counted, std::size_t number) { return repeat(load, each.work, counted, number); });
            each.cpu_us.push_back(reached.cpu_us_per_pair);
        }
    }
    results.begin("The forms of a lock, 1000 in flight, each on keys of its own: the client's CPU per pair, " +
                  describe_rounds(settings.rounds));
    const auto median_over_rounds = [&](std::size_t index) { return median(forms[index].cpu_us); };
    for (const form& each : forms)
        results.add({each.name, median(each.cpu_us), "us"});
    const double bare = median_over_rounds(0);
    // On the other backends, the differences are smaller than the variation of a pair.
    const bool is_steady = settings.backend.starts_with("redis");
    const auto add_overhead = [&](const char* name, double overhead, double limit) {
        results.add({name, overhead, "us", is_steady ? std::optional(limit) : std::nullopt});
    };
    add_overhead("with_lock, empty function, overhead over acquire and release", median_over_rounds(1) - bare, 1.2);
    add_overhead("with_lock, empty coroutine, overhead over acquire and release", median_over_rounds(2) - bare, 3.3);
    add_overhead("async_ functions, overhead over acquire and release", median_over_rounds(4) - bare, 4.7);
    add_overhead("under cancel_after, overhead without Asio's own part",
        median_over_rounds(5) - bare - (median_over_rounds(7) - median_over_rounds(6)), 3.4);
}

} // namespace bench
