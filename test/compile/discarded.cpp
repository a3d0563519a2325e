// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// A discarded lock is released in the same statement, and the following statements run without it.

#include <colock/locker.hpp>

namespace asio = boost::asio;

asio::awaitable<void> discard(colock::locker by)
{
    co_await by.acquire("k");                                          // warning
    co_await by.acquire_all({"a", "b"});                               // warning
    co_await by.acquire_global();                                      // warning
    co_await by.async_acquire("k");                                    // warning
    co_await by.async_acquire_all(std::vector<std::string>{"a", "b"}); // warning
    by.acquire("k");                                                   // warning
    static_cast<void>(co_await by.acquire("k"));
    const colock::lock kept = co_await by.acquire("k");
    const colock::lock_group group = co_await by.acquire_all({"a", "b"});
    co_await by.with_lock("k", [] {});
}
