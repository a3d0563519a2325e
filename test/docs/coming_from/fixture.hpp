// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/jump.hpp"
#include "support/print.hpp"
#include "support/process.hpp"
#include "support/run.hpp"

#include <colock/colock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// Compiles and runs the code of docs/coming-from.md. scripts/named_tests.sh compares the lines in the tables of that
// page with these tests.

namespace asio = boost::asio;
using namespace std::chrono_literals;
using colock::errc;

/// Defines a test case whose body is a coroutine and a member function of its own fixture. The arguments after the name
/// are decorators.
#define COLOCK_FIXTURE(fixture, name, ...)                                                                             \
    struct name##_fixture : fixture                                                                                    \
    {                                                                                                                  \
        asio::awaitable<void> body();                                                                                  \
    };                                                                                                                 \
    BOOST_AUTO_TEST_CASE(name __VA_OPT__(, ) __VA_ARGS__)                                                              \
    {                                                                                                                  \
        name##_fixture env;                                                                                            \
        env.run(env.body());                                                                                           \
    }                                                                                                                  \
    asio::awaitable<void> name##_fixture::body()

/// Returns the code of the exception of type Error that `coroutine` throws, or no error if it throws none.
template <class Error = boost::system::system_error, class T>
asio::awaitable<colock::error_code> code_of(asio::awaitable<T> coroutine)
{
    try {
        if constexpr (std::is_void_v<T>)
            co_await std::move(coroutine);
        else
            static_cast<void>(co_await std::move(coroutine));
    } catch (const Error& failure) {
        co_return failure.code();
    }
    co_return colock::error_code();
}

inline asio::awaitable<void> pass(colock::lease_clock::duration span)
{
    colock::lease_timer timer(co_await asio::this_coro::executor, span);
    co_await timer.async_wait(asio::deferred);
}

inline std::vector<std::string> keys_of(const auto& locks)
{
    std::vector<std::string> keys;
    for (const auto& each : locks)
        keys.push_back(each.key);
    return keys;
}

/// Locks in memory. The clock advances as soon as nothing else is left to do.
struct memory_fixture
{
    colock::testing::virtual_clock clock;
    asio::io_context io{1};
    std::shared_ptr<colock::adapter> backend = colock::memory::make_adapter(io.get_executor());
    colock::locker locker{backend};
    /// The locker of another process, from the view of `locker`.
    colock::locker other{backend};

    void run(asio::awaitable<void> body)
    {
        auto test = colock::testing::start(io, std::move(body));
        colock::testing::run_ready(io);
        // The steps grow, so that a test of hours of virtual time is short.
        for (colock::lease_clock::duration passed{0}, step{0}; !test.done() && passed < 24h; passed += step) {
            step = std::clamp<colock::lease_clock::duration>(passed / 100, 10ms, 1s);
            colock::testing::jump(io, step);
        }
        test.get(io);
    }
};

/// Precondition of a suite: this environment variable names a server. Otherwise ctest reports the suite as skipped.
inline auto is_served(const char* variable)
{
    return boost::unit_test::precondition([variable](boost::unit_test::test_unit_id suite) {
        boost::test_tools::assertion_result there(!colock::testing::from_environment(variable, "").empty());
        if (!there) {
            std::cout << "skipped: " << boost::unit_test::framework::get(suite, boost::unit_test::TUT_ANY).full_name()
                      << ": there is no " << variable << "; see scripts/servers.sh" << std::endl;
        }
        return there;
    });
}

/// A server that is shared by tests, in real time.
struct served_fixture
{
    asio::io_context io{1};
    /// A name that only this test uses.
    const std::string unique_name = colock::token::generate().hex();

    void run(asio::awaitable<void> body) { colock::testing::run_coro(io, std::move(body)); }
};

/// For all backends: an extension fails if the lock has expired or was taken by another holder, and does not acquire it
/// again.
inline asio::awaitable<void> check_lost_lock_is_not_requested_again(colock::locker ours, colock::locker others)
{
    colock::lock lock = co_await ours.acquire("expired", {.ttl = 300ms});
    co_await pass(350ms);
    colock::lock next = co_await others.acquire("expired");
    BOOST_TEST((co_await code_of<colock::extend_error>(lock.extend(1s)) == errc::not_held));
    BOOST_TEST(co_await next.is_locked());

    colock::lock stolen = co_await ours.acquire("stolen");
    co_await others.break_lock("stolen");
    BOOST_TEST((co_await code_of<colock::extend_error>(stolen.extend(1s)) == errc::not_held));
    BOOST_TEST(!co_await others.is_locked("stolen"));
}
