// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "contract.hpp"

#include <chrono>
#include <functional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace colock::contract {

/// Runs an operation that must throw `Error`; returns the code of the exception.
template <class Error, class T>
error_code failure_of(
    fixture& env, asio::awaitable<T> coroutine, std::source_location where = std::source_location::current())
{
    try {
        static_cast<void>(run_coro(env.io(), std::move(coroutine), where));
    } catch (const Error& thrown) {
        return thrown.code();
    }
    BOOST_TEST_CONTEXT("called from " << where.file_name() << ":" << where.line())
    {
        BOOST_ERROR("it did not throw");
    }
    return {};
}

/// Returns whether any locker holds the key. Uses a try_acquire if the backend cannot list its locks.
inline bool is_taken(
    fixture& env, const locker& by, std::string key, std::source_location where = std::source_location::current())
{
    if (env.capabilities().list)
        return run_coro(env.io(), by.is_locked(std::move(key)), where);
    auto lock = run_coro(env.io(), by.try_acquire(std::move(key)), where);
    if (lock)
        run_coro(env.io(), lock->release(on_failure::raise), where);
    return !lock;
}

inline std::vector<std::string> keys_of(const std::vector<held_lock>& locks)
{
    std::vector<std::string> keys;
    for (const auto& lock : locks)
        keys.push_back(lock.key);
    return keys;
}

using strings = std::vector<std::string>;

#define CHECK_STRINGS(actual, ...) BOOST_TEST(actual == strings(__VA_ARGS__), boost::test_tools::per_element())

/// Lets time pass in small steps, so that each timer is processed soon after it expires.
inline void pass_slowly(fixture& env, std::chrono::milliseconds span)
{
    for (const auto end = lease_clock::now() + span; lease_clock::now() < end;)
        env.pass_time(env.short_ttl() / 20);
}

/// Lets time pass in small steps until `reached` returns true. Fails the test if this takes longer than
/// four short TTLs.
inline void pass_slowly_until(fixture& env, const std::function<bool()>& reached)
{
    // Stored, because the condition may become false again.
    bool is_reached = reached();
    for (const auto end = lease_clock::now() + env.short_ttl() * 4; !is_reached && lease_clock::now() < end;) {
        env.pass_time(env.short_ttl() / 20);
        is_reached = reached();
    }
    BOOST_TEST_REQUIRE(is_reached);
}

} // namespace colock::contract
