// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "pool.hpp"
#include "support/driver.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// The data that the locks guard: plain integers, so that a second holder causes a data race as well as a wrong sum.
struct counters
{
    static constexpr std::size_t size = 3;
    std::array<long, size> values{};
    std::array<std::atomic<long>, size> expected{};

    [[nodiscard]] static std::string key(std::size_t index) { return "key:" + std::to_string(index); }
    void add(std::size_t index)
    {
        ++values[index];
        ++expected[index];
    }
    void check() const
    {
        for (std::size_t index = 0; index < size; ++index)
            BOOST_TEST(values[index] == expected[index].load());
    }
};

std::size_t stored(adapter& backend)
{
    return testing::stored_in(backend).size();
}

asio::awaitable<void> lock_and_count(locker by, counters& guarded, std::size_t seed)
{
    for (std::size_t n = 0; n < rounds; ++n) {
        const auto index = (seed + n) % counters::size;
        auto held = co_await by.acquire(counters::key(index));
        guarded.add(index);
        if (n % 3 == 0)
            co_await asio::post(asio::deferred);
        if (n % 2 == 0)
            co_await held.release();
    }
}

asio::awaitable<void> try_and_count(locker by, counters& guarded, std::size_t seed)
{
    for (std::size_t n = 0; n < rounds; ++n) {
        const auto index = (seed + n) % counters::size;
        if (auto held = co_await by.try_acquire(counters::key(index)))
            guarded.add(index);
        co_await asio::post(asio::deferred);
    }
}

asio::awaitable<void> count_in_body(locker by, counters& guarded, std::size_t seed)
{
    for (std::size_t n = 0; n < rounds / 2; ++n) {
        const auto index = (seed + n) % counters::size;
        co_await by.with_lock(counters::key(index), [&](lock& held) -> asio::awaitable<void> {
            guarded.add(index);
            co_await asio::post(asio::deferred);
            co_await held.extend(20s);
        });
    }
}

asio::awaitable<void> group_and_count(locker by, counters& guarded)
{
    for (std::size_t n = 0; n < rounds / 4; ++n) {
        auto group = co_await by.acquire_all({counters::key(0), counters::key(1), counters::key(2)});
        for (std::size_t index = 0; index < counters::size; ++index)
            guarded.add(index);
        if (n % 2 == 0)
            static_cast<void>(co_await group.release());
    }
}

asio::awaitable<void> watch(locker by)
{
    for (int n = 0; n < rounds; ++n) {
        static_cast<void>(by.stats());
        static_cast<void>(by.held_locks());
        static_cast<void>(co_await by.list());
        static_cast<void>(co_await by.is_locked(counters::key(0)));
        static_cast<void>(co_await by.purge(10));
        co_await asio::post(asio::deferred);
    }
}

/// Cancels each acquire after a very short, pseudo-random time. Runs on a strand, because a coroutine must not be
/// cancelled while another thread runs it.
asio::awaitable<void> count_with_short_timeout(locker by, counters& guarded, std::size_t seed)
{
    for (std::size_t n = 0; n < rounds; ++n) {
        const auto index = (seed + n) % counters::size;
        auto [code, held] = co_await by.async_acquire(counters::key(index),
            asio::cancel_after(std::chrono::microseconds((seed * 7 + n * 13) % 300), asio::as_tuple(asio::deferred)));
        if (!code)
            guarded.add(index);
    }
}

asio::awaitable<void> count_in_body_with_short_timeout(locker by, counters& guarded, std::size_t seed)
{
    for (std::size_t n = 0; n < rounds / 2; ++n) {
        const auto index = (seed + n) % counters::size;
        const auto body = [&guarded, index]() -> asio::awaitable<void> {
            guarded.add(index);
            co_await asio::post(asio::deferred);
        };
        auto [failure] = co_await by.async_with_lock(counters::key(index), body,
            asio::cancel_after(std::chrono::microseconds((seed * 11 + n * 17) % 500), asio::as_tuple(asio::deferred)));
        static_cast<void>(failure);
    }
}

/// Starts coroutines of all kinds that this file defines, at once.
void spawn_all(asio::io_context& io, const locker& by, counters& guarded, results& outcome)
{
    const auto spawn = [&](asio::awaitable<void> work) { asio::co_spawn(io, std::move(work), outcome.handler()); };
    const auto spawn_on_strand = [&](asio::awaitable<void> work) {
        asio::co_spawn(asio::make_strand(io), std::move(work), outcome.handler());
    };
    for (std::size_t n = 0; n < workers; ++n) {
        spawn(lock_and_count(by, guarded, n));
        spawn(try_and_count(by, guarded, n));
        spawn(count_in_body(by, guarded, n));
        spawn_on_strand(count_with_short_timeout(by, guarded, n));
        spawn_on_strand(count_in_body_with_short_timeout(by, guarded, n));
    }
    spawn(group_and_count(by, guarded));
    spawn(watch(by));
}

constexpr int coroutine_count = workers * 5 + 2;

/// Runs each context on two threads.
void run_both(asio::io_context& one, asio::io_context& two)
{
    bool two_finished = false;
    std::thread other([&] { two_finished = run_pool(two, 2); });
    BOOST_TEST(run_pool(one, 2));
    other.join();
    BOOST_TEST(two_finished);
}

} // namespace

BOOST_AUTO_TEST_SUITE(contention)

BOOST_AUTO_TEST_CASE(locks_exclude_on_four_threads)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        asio::io_context io(static_cast<int>(pool_size));
        const auto backend = make_backend(io, kind);
        const locker by(backend);
        counters guarded;
        results outcome;
        spawn_all(io, by, guarded, outcome);
        BOOST_TEST(run_pool(io));
        BOOST_TEST(outcome.ended == coroutine_count);
        BOOST_TEST(outcome.failed == 0);
        guarded.check();
        check_idle(by);
    }
}

BOOST_AUTO_TEST_CASE(two_lockers_on_one_store_exclude_each_other_across_contexts)
{
    asio::io_context one(2);
    asio::io_context two(2);
    const auto store = memory::make_adapter(one.get_executor());
    const locker first(store);
    // The operations of `second` complete in handlers of the context `two`.
    const locker second(std::make_shared<instrumented_adapter>(store, two.get_executor()));
    counters guarded;
    results outcome;
    spawn_all(one, first, guarded, outcome);
    spawn_all(two, second, guarded, outcome);
    run_both(one, two);
    BOOST_TEST(outcome.ended == 2 * coroutine_count);
    BOOST_TEST(outcome.failed == 0);
    guarded.check();
    check_idle(first);
    check_idle(second);
    BOOST_TEST(stored(*store) == 0U);
}

BOOST_AUTO_TEST_CASE(a_coroutine_of_another_context_may_wait)
{
    asio::io_context one(2);
    asio::io_context two(2);
    const locker by(memory::make_adapter(one.get_executor()));
    counters guarded;
    results outcome;
    for (std::size_t n = 0; n < workers; ++n) {
        asio::co_spawn(n % 2 ? one : two, lock_and_count(by, guarded, n), outcome.handler());
        asio::co_spawn(n % 2 ? one : two, count_in_body(by, guarded, n), outcome.handler());
    }
    run_both(one, two);
    BOOST_TEST(outcome.ended == 2 * workers);
    BOOST_TEST(outcome.failed == 0);
    guarded.check();
    check_idle(by);
}

BOOST_AUTO_TEST_CASE(shutdown_with_everything_in_flight)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (int delay = 0; delay < 4; ++delay) {
            asio::io_context io(static_cast<int>(pool_size));
            const auto backend = make_backend(io, kind);
            const locker by(backend);
            counters guarded;
            results outcome;
            spawn_all(io, by, guarded, outcome);
            std::optional<shutdown_report> report;
            asio::co_spawn(
                asio::make_strand(io),
                [&]() -> asio::awaitable<void> {
                    for (int n = 0; n < 200 * delay; ++n)
                        co_await asio::post(asio::deferred);
                    report = co_await by.shutdown(30s);
                },
                outcome.handler());
            BOOST_TEST(run_pool(io));
            BOOST_TEST(outcome.ended == coroutine_count + 1);
            BOOST_TEST_REQUIRE(report.has_value());
            BOOST_TEST(report->clean());
            BOOST_TEST(report->unproven == 0U);
            guarded.check();
            check_idle(by);
        }
    }
}

BOOST_AUTO_TEST_CASE(context_is_destroyed_with_everything_in_flight)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (int milliseconds = 0; milliseconds < 20; milliseconds += 4) {
            counters guarded;
            results outcome;
            std::optional<locker> survivor;
            {
                asio::io_context io(static_cast<int>(pool_size));
                const locker by(make_backend(io, kind));
                survivor = by;
                spawn_all(io, by, guarded, outcome);
                std::vector<std::thread> threads;
                for (std::size_t n = 0; n < pool_size; ++n)
                    threads.emplace_back([&io] { io.run(); });
                std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
                io.stop();
                for (auto& each : threads)
                    each.join();
            }
            BOOST_TEST(survivor->stats().waiting == 0U);
            BOOST_TEST(!survivor->get_executor());
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
