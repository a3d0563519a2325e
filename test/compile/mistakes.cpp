// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Typical mistakes. The compiler's error names the line of the mistake, and none names a header of colock or Asio.

#include <colock/locker.hpp>

#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace asio = boost::asio;
using namespace std::chrono_literals;

/// Has no default constructor.
struct result
{
    explicit result(int) {}
};

asio::awaitable<void> make_mistakes(colock::locker locker, int order)
{
    co_await locker.with_lock("k", {.ttl = 10}, [] {});                         // error
    const colock::lock seconds = co_await locker.acquire("k", {.ttl = 10});     // error
    const colock::lock number = co_await locker.acquire(order);                 // error
    const colock::lock number_too = co_await locker.async_acquire(order);       // error
    const colock::lock missing = locker.acquire("k");                           // error
    const colock::lock missing_too = locker.async_acquire("k", asio::deferred); // error
    const bool released = locker.try_acquire("k");                              // error
    co_await locker.with_lock(order, [] {});                                    // error
    co_await locker.with_lock("k", [](int) {});                                 // error
    co_await locker.with_lock("k", [](colock::lock) {});                        // error
    co_await locker.with_lock("k", "body");                                     // error
    co_await locker.async_with_lock("k", [&]() -> int& { return order; });      // error
    co_await locker.async_with_lock("k", [] { return result(1); });             // error
    co_await locker.with_lock({"a", "b"}, [](colock::lock&) {});                // error
    const colock::lock two_keys = co_await locker.acquire({"a", "b"});          // error
    locker.async_acquire("k", [] {});                                           // error
    locker.async_acquire("k", [](boost::system::error_code) {});                // error
    colock::lock lock = co_await locker.acquire("k");
    const colock::lock copy = lock;                                        // error
    co_await lock.extend(10);                                              // error
    lock.async_extend(10, asio::detached);                                 // error
    co_await lock.release;                                                 // error
    const colock::lock_group keys = co_await locker.acquire_all("a", "b"); // error
}
