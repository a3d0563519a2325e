// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "alternation.hpp"

#include <colock/colock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// Number of waiters that the measurements of the memory adapter start.
constexpr std::size_t many_waiters = 10'000;

/// A locker with its own store and its own context.
struct memory_locker
{
    boost::asio::io_context io{1};
    colock::locker locker{colock::memory::make_adapter(io.get_executor())};
    std::vector<colock::lock> held;

    void hold(const std::string& key)
    {
        run_until_done(io, [](memory_locker& self, std::string name) -> boost::asio::awaitable<void> {
            self.held.push_back(co_await self.locker.acquire(name, {.ttl = std::chrono::milliseconds(0)}));
        }(*this, key));
    }

    template <class Coroutine>
    void start_waiters(std::size_t count, Coroutine&& make)
    {
        for (std::size_t i = 0; i < count; ++i)
            boost::asio::co_spawn(io, make(i), boost::asio::detached);
        io.restart();
        io.poll();
        if (locker.stats().waiting != count)
            throw std::logic_error("not all waiters wait");
    }

    ~memory_locker()
    {
        held.clear();
        io.restart();
        io.run();
    }
};

inline boost::asio::awaitable<void> wait_once(colock::locker locker, std::string key)
{
    colock::lock lock = co_await locker.acquire(std::move(key));
    co_await lock.release();
}

} // namespace bench
