// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "busy_fixture.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/cancel_at.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

// Deadlines by asio::cancel_after.
BOOST_AUTO_TEST_SUITE(deadlines)

BOOST_AUTO_TEST_CASE(diagnostics_inside_and_around_cancel_after_keep_the_error)
{
    busy_fixture env;
    const auto& locker = *env.locker;
    check_diagnostics(failure_of(
        env, [&] { return await_in_coroutine(locker.async_acquire("k", single_attempt, asio::cancel_after(2s))); }));
    check_diagnostics(failure_of(env, [&] {
        return await_in_coroutine(
            locker.async_acquire("k", single_attempt, asio::cancel_after(2s, with_diagnostics(asio::deferred))));
    }));
    check_diagnostics(failure_of(env, [&] {
        return await_in_coroutine(
            locker.async_acquire("k", single_attempt, with_diagnostics(asio::cancel_after(2s, asio::deferred))));
    }));
}

BOOST_AUTO_TEST_CASE(deadline_throws_operation_aborted)
{
    busy_fixture env;
    const auto failure = failure_of(
        env, [&] { return await_in_coroutine(env.locker->async_acquire("k", {}, asio::cancel_after(10ms))); });
    BOOST_TEST_REQUIRE((failure != nullptr));
    COLOCK_THROWS(boost::system::system_error, asio::error::operation_aborted, std::rethrow_exception(failure));
}

BOOST_AUTO_TEST_CASE(deadline_is_kept_while_the_lock_is_released)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->always(operation::release, step::hold());
    lease_timer deadline(env.io());
    int value = 0;
    int completions = 0;
    const auto start = lease_clock::now();
    env.locker->async_with_lock(
        "k", {.ttl = 1h},
        []() -> asio::awaitable<int> {
            co_await sleep_for(600ms);
            co_return 7;
        },
        asio::cancel_after(deadline, 2s, [&](std::exception_ptr failure, int result) {
            BOOST_TEST(!failure);
            BOOST_TEST((lease_clock::now() - start < 2100ms));
            value = result;
            ++completions;
        }));
    env.advance_by_steps(3s, 50ms);
    BOOST_TEST(completions == 1);
    BOOST_TEST(value == 7);
    env.script->reset();
    BOOST_TEST(env.script->deliver());
    env.ready();
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(calls_with_a_deadline_are_destroyed_with_the_lockers_context)
{
    asio::io_context mine;
    std::optional<asio::io_context> theirs(std::in_place);
    const colock::locker by(memory::make_adapter(theirs->get_executor()));
    auto held = run_coro(*theirs, by.acquire("k"));
    theirs->restart();
    const auto live = std::make_shared<int>();
    bool is_invoked = false;
    const auto handler = [&] {
        return asio::bind_executor(
            mine.get_executor(), [&is_invoked, live](error_code, const auto&...) { is_invoked = true; });
    };
    by.async_acquire("k", asio::cancel_after(50ms, handler()));
    by.async_acquire("k", asio::cancel_at(std::chrono::steady_clock::now() + 50ms, handler()));
    held.async_lost(asio::cancel_after(50ms, handler()));
    const auto in_coroutine = [&](asio::awaitable<void> coroutine) {
        asio::co_spawn(
            mine, std::move(coroutine), [&is_invoked, live](const std::exception_ptr&) { is_invoked = true; });
    };
    in_coroutine([](const colock::locker& with) -> asio::awaitable<void> {
        static_cast<void>(co_await with.async_acquire("k", asio::cancel_after(50ms)));
    }(by));
    in_coroutine([](const colock::locker& with) -> asio::awaitable<void> {
        co_await with.async_with_lock("k", [] {}, asio::cancel_after(50ms));
    }(by));
    in_coroutine([](const colock::locker& with) -> asio::awaitable<void> {
        co_await with.async_with_lock("free", []() -> asio::awaitable<void> { co_await sleep_for(1h); });
    }(by));
    run_ready(mine);
    run_ready(*theirs);
    BOOST_TEST(live.use_count() == 7);
    theirs.reset();
    run_ready(mine);
    BOOST_TEST(!is_invoked);
    BOOST_TEST(live.use_count() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
