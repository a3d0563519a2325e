// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Typical mistakes that the compiler names by itself. Its error names the line of the mistake, and none names a header
// of colock or Asio. The mistakes for which colock has a sentence are in sentences.cpp.

#include <colock/locker.hpp>

#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<void> make_mistakes(colock::locker locker, int order)
{
    const colock::lock number = co_await locker.acquire(order);                      // error
    const colock::lock number_too = co_await locker.async_acquire(order);            // error
    const colock::lock unknown = co_await locker.acquire("k", {.tll = 10s});         // error
    co_await locker.with_lock("k", {.tll = 10s}, [] {});                             // error
    const colock::lock_group string = co_await locker.acquire_all(std::string("a")); // error
    const colock::lock missing = locker.acquire("k");                                // error
    const colock::lock missing_too = locker.async_acquire("k", asio::deferred);      // error
    const bool released = locker.try_acquire("k");                                   // error
    colock::lock lock = co_await locker.acquire("k");
    const colock::lock copy = lock;                                        // error
    co_await lock.extend(10);                                              // error
    lock.async_extend(10, asio::detached);                                 // error
    co_await lock.release;                                                 // error
    const colock::lock_group keys = co_await locker.acquire_all("a", "b"); // error
}
