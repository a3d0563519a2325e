// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "busy_fixture.hpp"

#include <colock/with_diagnostics.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/version.hpp>
#if BOOST_VERSION >= 108600
#include <boost/asio/cancel_after.hpp>
#endif

#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// Returns the exception with which the future ends; null if it has a value.
std::exception_ptr exception_of(std::future<lock>& result)
{
    try {
        static_cast<void>(result.get());
    } catch (...) {
        return std::current_exception();
    }
    return nullptr;
}

} // namespace

BOOST_AUTO_TEST_SUITE(with_diagnostics_token)

BOOST_AUTO_TEST_CASE(co_await_throws_what_the_coroutine_function_throws)
{
    busy_fixture env;
    check_diagnostics(failure_of(env, [&] { return env.locker->acquire("k", single_attempt); }));
    check_diagnostics(
        failure_of(env, [&] { return await_in_coroutine(env.locker->async_acquire("k", single_attempt)); }));
    check_diagnostics(failure_of(env, [&] {
        return await_in_coroutine(env.locker->async_acquire("k", single_attempt, with_diagnostics(asio::deferred)));
    }));
}

BOOST_AUTO_TEST_CASE(a_tuple_has_the_code_or_the_exception)
{
    busy_fixture env;
    const auto job = [&]() -> asio::awaitable<void> {
        const auto [code, none] =
            co_await env.locker->async_acquire("k", single_attempt, asio::as_tuple(asio::deferred));
        static_assert(std::is_same_v<decltype(code), const error_code>);
        BOOST_TEST((code == errc::retry_exhausted));
        BOOST_TEST(none.key().empty());
        const auto [failure, also_none] =
            co_await env.locker->async_acquire("k", single_attempt, with_diagnostics(asio::as_tuple(asio::deferred)));
        check_diagnostics(failure);
#if BOOST_VERSION >= 108600
        const auto [default_code, none_again] = co_await env.locker->async_acquire("k", single_attempt, asio::as_tuple);
        static_assert(std::is_same_v<decltype(default_code), const error_code>);
        BOOST_TEST((default_code == errc::retry_exhausted));
#endif
    };
    env.run(job());
}

BOOST_AUTO_TEST_CASE(redirected_code_leaves_the_output_of_an_operation_of_colock)
{
    busy_fixture env;
    error_code code;
    diagnostics output;
    env.locker->async_acquire(
        "k", single_attempt, asio::redirect_error(with_diagnostics(output, [](const lock&) {}), code));
    env.ready();
    BOOST_TEST((code == errc::retry_exhausted));
    check_diagnostics(output.failure);
}

#if BOOST_VERSION >= 108600
BOOST_AUTO_TEST_CASE(cancel_after_may_be_inside_or_outside)
{
    busy_fixture env;
    const auto check_future = [&](std::future<lock> result) {
        env.ready();
        check_diagnostics(exception_of(result));
    };
    const auto acquire = [&](auto&& token) {
        return env.locker->async_acquire("k", single_attempt, std::forward<decltype(token)>(token));
    };
    check_future(acquire(asio::cancel_after(1s, with_diagnostics(asio::use_future))));
    check_future(acquire(with_diagnostics(asio::cancel_after(1s, asio::use_future))));

    diagnostics output;
    acquire(asio::cancel_after(1s, with_diagnostics(output, [](error_code, lock) {})));
    env.ready();
    check_diagnostics(output.failure);
    std::exception_ptr failure;
    asio::cancellation_signal cancel;
    acquire(asio::cancel_after(1s, asio::bind_cancellation_slot(cancel.slot(),
                                       with_diagnostics([&](std::exception_ptr why, lock) { failure = why; }))));
    env.ready();
    check_diagnostics(failure);
}
#endif

BOOST_AUTO_TEST_CASE(a_future_throws_the_exception)
{
    busy_fixture env;
    auto rich = env.locker->async_acquire("k", single_attempt, with_diagnostics(asio::use_future));
    auto plain = env.locker->async_acquire("k", single_attempt, asio::use_future);
    auto granted = env.locker->async_acquire("free", single_attempt, with_diagnostics(asio::use_future));
    env.ready();
    check_diagnostics(exception_of(rich));
    COLOCK_THROWS(boost::system::system_error, errc::retry_exhausted, plain.get());
    BOOST_TEST(granted.get().held());
}

BOOST_AUTO_TEST_CASE(a_callback_finds_the_exception_in_its_diagnostics)
{
    for (const bool is_foreign : {false, true}) {
        busy_fixture env;
        asio::io_context theirs;
        diagnostics output;
        int calls = 0;
        const auto executor = is_foreign ? theirs.get_executor() : env.io().get_executor();
        const auto run_all = [&] {
            env.ready();
            theirs.restart();
            static_cast<void>(theirs.poll());
        };
        env.locker->async_acquire("k", single_attempt,
            with_diagnostics(output, asio::bind_executor(executor, [&](error_code code, const lock& none) {
                ++calls;
                BOOST_TEST((code == errc::retry_exhausted));
                BOOST_TEST(none.key().empty());
                check_diagnostics(output.failure);
            })));
        run_all();
        BOOST_TEST(calls == 1);
        lock held;
        env.locker->async_acquire("free", single_attempt,
            with_diagnostics(output, asio::bind_executor(executor, [&](error_code code, lock granted) {
                ++calls;
                BOOST_TEST(!code);
                BOOST_TEST((output.failure == nullptr));
                held = std::move(granted);
            })));
        run_all();
        BOOST_TEST(calls == 2);
        BOOST_TEST(held.held());
    }
}

BOOST_AUTO_TEST_CASE(lvalue_token_can_be_used_again)
{
    busy_fixture env;
    diagnostics output;
    int calls = 0;
    auto token = with_diagnostics(output, [&calls, state = std::make_shared<int>(1)](error_code, const lock&) {
        BOOST_TEST((state != nullptr));
        ++calls;
    });
    env.locker->async_acquire("k", single_attempt, token);
    env.ready();
    env.locker->async_acquire("k", single_attempt, token);
    env.ready();
    BOOST_TEST(calls == 2);
    check_diagnostics(output.failure);
}

BOOST_AUTO_TEST_CASE(release_of_a_lost_lock_throws_its_exception)
{
    virtual_fixture env;
    auto held = env.acquire("k", {.ttl = 1s});
    env.advance(2s);
    const auto job = [&]() -> asio::awaitable<void> { co_await held.async_release(on_failure::raise); };
    try {
        env.run(job());
        BOOST_ERROR("nothing thrown");
    } catch (const release_error& failed) {
        BOOST_TEST((failed.code() == errc::not_held));
        BOOST_TEST(failed.key() == "k");
    }
}

BOOST_AUTO_TEST_CASE(diagnostics_of_async_with_lock_have_the_exception_of_the_body)
{
    virtual_fixture env;
    diagnostics output;
    int calls = 0;
    const auto run = [&](auto body) {
        env.locker->async_with_lock("k", std::move(body), with_diagnostics(output, [&](std::exception_ptr failure) {
            ++calls;
            BOOST_TEST((failure == output.failure));
        }));
        env.ready();
    };
    run([] { throw std::logic_error("broken"); });
    BOOST_CHECK_THROW(std::rethrow_exception(output.failure), std::logic_error);
    run([] {});
    BOOST_TEST((output.failure == nullptr));
    BOOST_TEST(calls == 2);
}

BOOST_AUTO_TEST_CASE(operation_with_only_a_code_completes_with_an_exception)
{
    asio::io_context io;
    asio::steady_timer timer(io, 1h);
    std::exception_ptr failure;
    timer.async_wait(with_diagnostics([&](std::exception_ptr output) { failure = std::move(output); }));
    timer.cancel();
    io.run();
    BOOST_TEST_REQUIRE((failure != nullptr));
    COLOCK_THROWS(boost::system::system_error, asio::error::operation_aborted, std::rethrow_exception(failure));

    // The output of an earlier operation is cleared.
    diagnostics output{failure};
    timer.expires_after(0s);
    error_code code = asio::error::fault;
    timer.async_wait(with_diagnostics(output, [&](error_code reached) { code = reached; }));
    BOOST_TEST((output.failure == nullptr));
    io.restart();
    io.run();
    BOOST_TEST(!code);
    BOOST_TEST((output.failure == nullptr));
    timer.expires_after(1h);
    timer.async_wait(with_diagnostics(output, [&](error_code reached) { code = reached; }));
    timer.cancel();
    io.restart();
    io.run();
    BOOST_TEST((code == asio::error::operation_aborted));
    COLOCK_THROWS(boost::system::system_error, asio::error::operation_aborted, std::rethrow_exception(output.failure));
    output.failure = nullptr;
    timer.expires_after(1h);
    timer.async_wait(asio::as_tuple(with_diagnostics(output, [](std::tuple<error_code>) {})));
    timer.cancel();
    io.restart();
    io.run();
    BOOST_TEST_REQUIRE((output.failure != nullptr));
    COLOCK_THROWS(boost::system::system_error, asio::error::operation_aborted, std::rethrow_exception(output.failure));

    bool called = false;
    asio::post(io, with_diagnostics([&] { called = true; }));
    io.restart();
    io.run();
    BOOST_TEST(called);
}

BOOST_AUTO_TEST_SUITE_END()
