// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Typical mistakes for which colock has a sentence. The compiler's first error names the line and has the sentence.

#include <colock/election.hpp>
#include <colock/locker.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>

#include <string>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

/// Has no default constructor.
struct result
{
    explicit result(int) {}
};

void on_code(boost::system::error_code);

// clang-format off: each mistake is one line.

asio::awaitable<void> make_mistakes(colock::locker locker, asio::steady_timer timer, int order)
{
    const colock::election election(locker, "k");
    colock::lock_group group = locker.group();
    // Several keys.
    const colock::lock two_keys = co_await locker.acquire({"a", "b"}); // error: a single key has no braces, and several keys need another function: acquire_all
    const auto mixed = co_await locker.acquire({"a", {"b", colock::lock_mode::shared}}, {.ttl = 10s}); // error: a single key has no braces, and several keys need another function: acquire_all
    const auto tried = co_await locker.try_acquire({"a", "b"}); // error: a single key has no braces, and several keys need another function: acquire_all
    const auto limited = co_await locker.try_acquire({"a", "b"}, 5s); // error: a single key has no braces, and several keys need another function: acquire_all
    const auto token = co_await locker.async_acquire({"a", "b"}, {.ttl = 10s}); // error: a single key has no braces, and several keys need another function: acquire_all
    const bool locked = co_await locker.is_locked({"a", "b"}); // error: a single key has no braces, and several keys need another function: acquire_all
    co_await group.acquire({"a", "b"}); // error: a single key has no braces, and several keys need another function: acquire_all
    co_await locker.with_lock(order, [] {}); // error: the first argument is a key, or several keys: a list in braces or a range of strings
    co_await locker.with_lock(std::vector<int>{1, 2}, [] {}); // error: the first argument is a key, or several keys: a list in braces or a range of strings
    // Members of the options.
    const colock::lock seconds = co_await locker.acquire("k", {.ttl = 10}); // error: write a time with a unit, in whole milliseconds
    co_await locker.with_lock("k", {.ttl = 0.5s}, [] {}); // error: write a time with a unit, in whole milliseconds
    co_await locker.async_with_lock("k", {.max_hold = 500us}, [] {}); // error: write a time with a unit, in whole milliseconds
    locker.async_acquire("k", {.ttl = 10}, [](boost::system::error_code, colock::lock) {}); // error: write a time with a unit, in whole milliseconds
    const auto limit = co_await locker.acquire("k", {.retry = 5s}); // error: write within(5s) to wait for at most 5 s
    // Handlers.
    locker.async_acquire("k", [] {}); // error: the handler takes a boost::system::error_code
    locker.async_acquire("k", [](colock::lock) {}); // error: the handler takes a boost::system::error_code
    locker.async_acquire("k", {.ttl = 10s}, [](boost::system::error_code) {}); // error: the handler takes a boost::system::error_code
    locker.async_acquire("k", [](auto) {}); // error: the handler takes a boost::system::error_code
    locker.async_acquire("k", on_code); // error: the handler takes a boost::system::error_code
    locker.async_try_acquire("k", 5s, [](std::exception_ptr, std::optional<colock::lock>) {}); // error: the handler takes a boost::system::error_code
    locker.async_acquire_all({"a", "b"}, [](boost::system::error_code, colock::lock) {}); // error: the handler takes a boost::system::error_code
    locker.async_shutdown(5s, [] {}); // error: the handler takes a boost::system::error_code
    group.async_acquire("k", [](boost::system::error_code, colock::lock) {}); // error: the handler takes a boost::system::error_code
    locker.async_with_lock("k", [] {}, [](boost::system::error_code) {}); // error: async_try_with_lock, and inside with_diagnostics: a std::exception_ptr
    co_await locker.async_acquire("k", asio::as_tuple(colock::with_diagnostics(asio::deferred))); // error: write with_diagnostics(as_tuple(token))
    co_await timer.async_wait(asio::as_tuple(colock::with_diagnostics(asio::deferred))); // error: write with_diagnostics(as_tuple(token))
    // Bodies.
    co_await locker.with_lock("k", [](int) {}); // error: the body takes nothing, or colock::lock&
    co_await locker.with_lock("k", {.ttl = 10s}, [](colock::lock) {}); // error: the body takes nothing, or colock::lock&
    co_await locker.with_lock({"a", "b"}, [](colock::lock&) {}); // error: with several keys colock::lock_group&
    co_await locker.try_with_lock("k", 5s, [](colock::lock_group&) {}); // error: the body takes nothing, or colock::lock&
    co_await locker.with_lock("k", "body"); // error: the body takes nothing, or colock::lock&
    locker.async_with_lock("k", [](int) {}, [](std::exception_ptr) {}); // error: the body takes nothing, or colock::lock&
    co_await locker.async_try_with_lock("k", 5s, [](int) {}); // error: the body takes nothing, or colock::lock&
    co_await locker.with_lock("k", [&]() -> int& { return order; }); // error: the body returns a reference
    co_await locker.async_with_lock("k", [&]() -> int& { return order; }); // error: the body returns a reference
    co_await election.lead([](int) -> asio::awaitable<void> { co_return; }); // error: the body takes nothing, or colock::leadership&
    co_await election.lead([](colock::leadership&) {}); // error: the body is a coroutine without a result: it returns boost::asio::awaitable<void>
    co_await election.lead([]() -> asio::awaitable<int> { co_return 1; }); // error: the body is a coroutine without a result: it returns boost::asio::awaitable<void>
    election.async_lead([] {}, [](boost::system::error_code) {}); // error: the body is a coroutine without a result: it returns boost::asio::awaitable<void>
    co_await locker.async_with_lock("k", [] { return result(1); }); // error: the result of the body has no default constructor
}
