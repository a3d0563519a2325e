// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "pool.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(races)

namespace {

asio::awaitable<void> lock_again_and_again(locker by, std::vector<std::string> keys)
{
    for (std::size_t n = 0; n < rounds; ++n) {
        if (keys.size() == 1) {
            auto held = co_await by.acquire(keys.front());
            co_await asio::post(asio::deferred);
            co_await held.release();
        } else {
            auto held = co_await by.acquire_all(keys);
            static_cast<void>(co_await held.release());
        }
    }
}

asio::awaitable<void> pass_on(locker by, locker to, std::atomic<int>& inside)
{
    for (std::size_t n = 0; n < rounds; ++n) {
        auto held = co_await by.acquire("k");
        const bool was_alone = ++inside == 1;
        const auto ticket = co_await held.detach();
        auto adopted = co_await to.adopt(ticket);
        if (--inside != 0 || !was_alone || adopted.fence() <= held.fence())
            throw std::logic_error("somebody else had it meanwhile");
        co_await adopted.release();
    }
}

} // namespace

BOOST_AUTO_TEST_CASE(locks_move_while_others_wait)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        asio::io_context io(static_cast<int>(pool_size));
        const auto backend = make_backend(io, kind);
        const locker one(backend), other(backend);
        results outcome;
        std::atomic<int> inside{0};
        for (int n = 0; n < workers; ++n) {
            asio::co_spawn(io, pass_on(one, n % 2 == 0 ? one : other, inside), outcome.handler());
            asio::co_spawn(io, lock_again_and_again(other, {"k"}), outcome.handler());
        }
        BOOST_TEST(run_pool(io));
        BOOST_TEST(outcome.ended == 2 * workers);
        BOOST_TEST(outcome.failed == 0);
        check_idle(one);
        check_idle(other);
    }
}

namespace {

asio::awaitable<void> lock_or_be_busy(locker by, retry_policy policy)
{
    for (std::size_t n = 0; n < 20 * rounds; ++n) {
        try {
            auto held = co_await by.acquire("k", {.retry = policy});
            co_await asio::post(asio::deferred);
        } catch (const retry_error&) {
            // The lock is busy. Any other error fails the test.
        }
        co_await asio::post(asio::deferred);
    }
}

} // namespace

BOOST_AUTO_TEST_CASE(waiter_that_gives_up_behind_another_caller_reports_busy)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        asio::io_context io(static_cast<int>(pool_size));
        const locker by(make_backend(io, kind));
        results outcome;
        for (int n = 0; n < workers; ++n) {
            auto policy = n % 2 == 0 ? retry_policy::never() : retry_policy::forever();
            asio::co_spawn(io, lock_or_be_busy(by, std::move(policy)), outcome.handler());
        }
        BOOST_TEST(run_pool(io));
        BOOST_TEST(outcome.ended == workers);
        BOOST_TEST(outcome.failed == 0);
        check_idle(by);
    }
}

namespace {

asio::awaitable<void> try_again_and_again(locker by, std::string key)
{
    for (std::size_t n = 0; n < 10 * rounds; ++n) {
        auto held = co_await by.try_acquire(key);
        if (!held)
            throw std::logic_error("a free key is busy");
        co_await held->release();
    }
}

} // namespace

BOOST_AUTO_TEST_CASE(try_acquire_detects_a_grant_on_another_thread)
{
    asio::io_context io(static_cast<int>(pool_size));
    const locker by(make_backend(io, backend_kind::scripted));
    results outcome;
    for (int n = 0; n < workers; ++n)
        asio::co_spawn(io, try_again_and_again(by, std::to_string(n)), outcome.handler());
    BOOST_TEST(run_pool(io));
    BOOST_TEST(outcome.ended == workers);
    BOOST_TEST(outcome.failed == 0);
    check_idle(by);
}

/// A release on another thread may hand over to a group that has just found its first key held, or may fail to do so.
BOOST_AUTO_TEST_CASE(a_group_waits_while_its_first_key_is_handed_over)
{
    for (const bool fails : {false, true}) {
        asio::io_context io(static_cast<int>(pool_size));
        const auto backend = std::make_shared<instrumented_adapter>(memory::make_adapter(io.get_executor()));
        for (int n = 0; fails && n < rounds; ++n) {
            backend->next(operation::hand_over, step::lose_request());
            backend->next(operation::hand_over, step::busy());
        }
        const locker by(backend, {.retry = retry_policy::fixed(1ms)});
        results outcome;
        // Two callers per key, because more waiters behind the holder would keep the group from becoming the head.
        for (std::size_t n = 0; n < workers; ++n) {
            const auto name = std::to_string(n);
            asio::co_spawn(io, lock_again_and_again(by, {"a" + name}), outcome.handler());
            asio::co_spawn(io, lock_again_and_again(by, {"a" + name, "b" + name}), outcome.handler());
        }
        BOOST_TEST(run_pool(io));
        BOOST_TEST(outcome.ended == 2 * workers);
        BOOST_TEST(outcome.failed == 0);
        check_idle(by);
    }
}

BOOST_AUTO_TEST_CASE(last_locker_is_destroyed_while_others_wait)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        asio::io_context io(static_cast<int>(pool_size));
        const auto backend = make_backend(io, kind);
        results outcome;
        {
            const locker by(backend);
            for (int n = 0; n < 50; ++n) {
                by.async_acquire("k", [&outcome](error_code code, lock) {
                    ++outcome.ended;
                    if (code && code != errc::shutting_down)
                        ++outcome.failed;
                });
            }
        }
        BOOST_TEST(run_pool(io));
        BOOST_TEST(outcome.ended == 50);
        BOOST_TEST(outcome.failed == 0);
    }
}

BOOST_AUTO_TEST_CASE(loss_directly_after_the_grant_is_reported)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (const auto ttl : {0ms, 30000ms}) {
            asio::io_context io(static_cast<int>(pool_size));
            const auto backend = make_backend(io, kind);
            const locker by(backend);
            results outcome;
            for (std::size_t n = 0; n < workers; ++n) {
                asio::co_spawn(
                    io,
                    [](locker subject, std::string key, std::chrono::milliseconds lease,
                        results& notified) -> asio::awaitable<void> {
                        for (int round = 0; round < rounds; ++round) {
                            const auto held = std::make_shared<lock>(co_await subject.acquire(key, {.ttl = lease}));
                            held->async_lost([held, &notified](error_code code, lost_reason reason) {
                                if (code || reason != lost_reason::released)
                                    ++notified.failed;
                                ++notified.ended;
                            });
                            co_await held->release();
                        }
                    }(by, "own:" + std::to_string(n), ttl, outcome),
                    [](std::exception_ptr) {});
            }
            BOOST_TEST(run_pool(io));
            BOOST_TEST(outcome.ended == workers * rounds);
            BOOST_TEST(outcome.failed == 0);
            check_idle(by);
        }
    }
}

BOOST_AUTO_TEST_CASE(an_administrator_breaks_locks_that_are_used)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        asio::io_context io(static_cast<int>(pool_size));
        const auto backend = make_backend(io, kind);
        const locker by(backend);
        std::atomic<int> ended{0};
        const auto done = [&](std::exception_ptr) { ++ended; };
        for (int n = 0; n < workers; ++n) {
            asio::co_spawn(
                io,
                [](locker subject) -> asio::awaitable<void> {
                    for (int round = 0; round < rounds; ++round) {
                        auto held = co_await subject.acquire("k", {.renewal = renewal::automatic});
                        co_await asio::post(asio::deferred);
                        static_cast<void>(held.held());
                        static_cast<void>(co_await held.is_locked());
                        co_await held.release();
                    }
                }(by),
                done);
        }
        asio::co_spawn(
            io,
            [](locker subject) -> asio::awaitable<void> {
                for (int round = 0; round < 4 * rounds; ++round) {
                    static_cast<void>(co_await subject.break_lock("k"));
                    co_await asio::post(asio::deferred);
                }
            }(by),
            done);
        BOOST_TEST(run_pool(io));
        BOOST_TEST(ended == workers + 1);
        check_idle(by);
    }
}

BOOST_AUTO_TEST_CASE(break_on_another_thread_ends_a_lock_that_is_just_being_granted)
{
    for (const bool same_locker : {true, false}) {
        asio::io_context io, theirs, ours;
        const auto script =
            std::make_shared<instrumented_adapter>(memory::make_adapter(io.get_executor()), timing::immediate);
        const locker by(script), other(script);
        std::promise<void> granted, broken;
        script->next(operation::create, step::pass().after([&] {
            granted.set_value();
            broken.get_future().wait();
        }));
        lock held;
        std::thread acquiring([&] { held = run_coro(theirs, by.acquire("k", {.ttl = 0ms})); });
        granted.get_future().wait();
        BOOST_TEST(run_coro(ours, (same_locker ? by : other).break_lock("k")).size() == 1U);
        broken.set_value();
        acquiring.join();
        BOOST_TEST(!held.held());
        BOOST_TEST((run_coro(ours, held.lost()) == lost_reason::broken));
        BOOST_TEST(run_coro(ours, other.acquire("k")).held());
        held = {};
        check_idle(by);
        check_idle(other);
    }
}

BOOST_AUTO_TEST_SUITE_END()
