// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "counter.hpp"
#include "processes.hpp"

#include <colock/locker.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <chrono>
#include <utility>

namespace asio = boost::asio;

/// Adds to a counter that other processes add to as well. An update reads and, after a delay, writes. If another
/// process reads in between, it writes the same number again, and one of the two updates is lost.
class worker
{
public:
    worker(counter total, event_pipe supervisor) : total_(std::move(total)), supervisor_(supervisor) {}

    asio::awaitable<void> add_unlocked(int times) const
    {
        for (int i = 0; i < times; ++i)
            co_await add_one();
    }

    /// The lock makes each update atomic. A holder that is killed during an update cannot release the lock, so the
    /// others wait until its TTL has passed. The lease of a running holder is renewed during its update.
    asio::awaitable<void> add_locked(colock::locker locker, int times) const
    {
        for (int i = 0; i < times; ++i)
            co_await locker.with_lock("shared counter", [this] { return add_one(); });
    }

private:
    asio::awaitable<void> add_one() const
    {
        supervisor_.send(event::adding); // the supervisor sometimes kills the worker here
        const long value = total_.read();
        co_await asio::steady_timer(co_await asio::this_coro::executor, std::chrono::milliseconds(2))
            .async_wait(asio::deferred);
        total_.write(value + 1);
        supervisor_.send(event::added);
    }

    counter total_;
    event_pipe supervisor_;
};
