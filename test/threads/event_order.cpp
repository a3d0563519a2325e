// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "pool.hpp"

#include <colock/metrics.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// Counts events that contradict the events before them. Exclusive locks of one key are granted and released
/// alternately.
struct order_checker : observer
{
    std::atomic<int> inside{0};
    std::atomic<int> granted_count{0};
    std::atomic<int> wrong{0};
    /// Number of calls in progress.
    std::atomic<int> calls{0};

    void granted(std::string_view, std::uint64_t, std::chrono::nanoseconds) noexcept override
    {
        check(++calls == 1);
        ++granted_count;
        check(++inside == 1);
        --calls;
    }
    void released(std::string_view, std::chrono::nanoseconds) noexcept override
    {
        check(++calls == 1);
        check(--inside == 0);
        --calls;
    }
    void check(bool fits) noexcept
    {
        if (!fits)
            ++wrong;
    }
};

asio::awaitable<void> lock_in_turn(locker by, std::size_t seed)
{
    for (std::size_t n = 0; n < 20 * rounds; ++n) {
        auto held = co_await by.acquire("k");
        if ((n + seed) % 3 == 0)
            co_await asio::post(asio::deferred);
        if ((n + seed) % 2 == 0)
            co_await held.release();
    }
}

/// Returns the sum of the samples of a metric whose labels contain `label`.
double sum_of(const std::string& text, std::string_view metric, std::string_view label = {})
{
    double sum = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const bool is_sample = line.starts_with(metric) && line.find_first_of("{ ") == metric.size();
        if (is_sample && line.find(label) != std::string::npos)
            sum += std::stod(line.substr(line.rfind(' ')));
    }
    return sum;
}

} // namespace

BOOST_AUTO_TEST_SUITE(event_order)

BOOST_AUTO_TEST_CASE(grants_and_releases_of_a_key_are_reported_alternately)
{
    asio::io_context io(static_cast<int>(pool_size));
    const auto checker = std::make_shared<order_checker>();
    const locker by(make_backend(io, backend_kind::memory), {.observer = checker});
    results outcome;
    for (int n = 0; n < workers; ++n)
        asio::co_spawn(io, lock_in_turn(by, static_cast<std::size_t>(n)), outcome.handler());
    BOOST_TEST(run_pool(io));
    BOOST_TEST(outcome.ended == workers);
    BOOST_TEST(outcome.failed == 0);
    BOOST_TEST(checker->granted_count == workers * 20 * rounds);
    BOOST_TEST(checker->inside == 0);
    BOOST_TEST(checker->wrong == 0);
    check_idle(by);
}

BOOST_AUTO_TEST_CASE(backlog_of_a_slow_observer_is_bounded)
{
    struct slow_observer : observer
    {
        std::atomic<std::uint64_t> reported{0};
        void granted(std::string_view, std::uint64_t, std::chrono::nanoseconds) noexcept override { report(); }
        void released(std::string_view, std::chrono::nanoseconds) noexcept override { report(); }
        void report() noexcept
        {
            // Takes longer than an acquire and a release.
            for (int n = 0; n < 20; ++n)
                std::this_thread::yield();
            ++reported;
        }
    };
    asio::io_context io(static_cast<int>(pool_size));
    const auto slow = std::make_shared<slow_observer>();
    const locker by(make_backend(io, backend_kind::memory), {.observer = slow});
    std::atomic<std::uint64_t> longest{0};
    results outcome;
    for (std::size_t worker = 0; worker < pool_size; ++worker) {
        asio::co_spawn(
            io,
            [&, key = "k" + std::to_string(worker)]() -> asio::awaitable<void> {
                for (int n = 0; n < 100 * rounds; ++n) {
                    lock held = co_await by.acquire(key);
                    co_await held.release();
                    // Read in this order, so that events that are caused meanwhile do not count.
                    const auto stats = by.stats();
                    const auto caused = stats.grants + stats.releases;
                    const auto reported = slow->reported.load();
                    auto seen = longest.load();
                    while (caused > reported + seen && !longest.compare_exchange_weak(seen, caused - reported)) {
                    }
                }
            },
            outcome.handler());
    }
    BOOST_TEST(run_pool(io));
    BOOST_TEST(outcome.failed == 0);
    BOOST_TEST(slow->reported == 2 * pool_size * 100 * rounds);
    BOOST_TEST(longest < 1100U);
    check_idle(by);
}

BOOST_AUTO_TEST_CASE(metrics_agree_with_the_held_locks_after_a_storm)
{
    asio::io_context io(static_cast<int>(pool_size));
    const auto counted = std::make_shared<metrics>();
    const locker by(make_backend(io, backend_kind::memory), {.observer = counted});
    results outcome;
    std::mutex mutex;
    std::vector<lock> kept;
    for (int worker = 0; worker < workers; ++worker) {
        asio::co_spawn(
            io,
            [&, worker]() -> asio::awaitable<void> {
                for (int n = 0; n < 10 * rounds; ++n) {
                    lock held = co_await by.acquire("k:" + std::to_string((worker + n) % 5), {.ttl = 1h});
                    if (n % 100 == 99)
                        co_await by.break_lock(held.key());
                    else if (n % 3 == 0)
                        co_await held.release();
                }
                lock last = co_await by.acquire("last:" + std::to_string(worker), {.ttl = 0ms});
                const std::lock_guard guard(mutex);
                kept.push_back(std::move(last));
            },
            outcome.handler());
    }
    BOOST_TEST(run_pool(io));
    BOOST_TEST(outcome.failed == 0);
    const std::string text = counted->text({by});
    const auto granted = sum_of(text, "colock_acquires_total", "outcome=\"granted\"");
    const auto ended = sum_of(text, "colock_releases_total") + sum_of(text, "colock_losses_total");
    BOOST_TEST(granted == workers * (10.0 * rounds + 1));
    BOOST_TEST(granted - ended == workers);
    BOOST_TEST(sum_of(text, "colock_held") == workers);
}

BOOST_AUTO_TEST_SUITE_END()
