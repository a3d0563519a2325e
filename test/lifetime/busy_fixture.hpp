// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/virtual_fixture.hpp"

#include <colock/with_diagnostics.hpp>

#include <exception>
#include <string>
#include <utility>

namespace colock::testing {

inline const acquire_options single_attempt{.retry = retry_policy::never()};

/// A locker whose key "k" is held by another one, which is named "cron".
struct busy_fixture : virtual_fixture
{
    colock::locker other{memory, {.owner = "cron"}};
    colock::lock held = run(other.acquire("k"));
};

/// Checks that `failure` is the exception that the plain operation throws for the busy key, with all its diagnostics.
inline void check_diagnostics(const std::exception_ptr& failure)
{
    BOOST_TEST_REQUIRE((failure != nullptr));
    COLOCK_THROWS(retry_error, errc::retry_exhausted, std::rethrow_exception(failure));
    try {
        std::rethrow_exception(failure);
    } catch (const retry_error& failed) {
        BOOST_TEST(failed.key() == "k");
        BOOST_TEST(failed.backend() == "memory");
        BOOST_TEST(failed.attempts() == 1U);
        BOOST_TEST(failed.detail().find("cron") != std::string::npos, failed.detail());
    } catch (...) {
    }
}

/// The exception of a coroutine that fails.
template <class Make>
std::exception_ptr failure_of(virtual_fixture& env, Make make)
{
    try {
        static_cast<void>(env.run(make()));
    } catch (...) {
        return std::current_exception();
    }
    return nullptr;
}

inline asio::awaitable<lock> await_in_coroutine(auto operation)
{
    co_return co_await std::move(operation);
}

} // namespace colock::testing
