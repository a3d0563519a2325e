// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "counter.hpp"
#include "processes.hpp"

#include <colock/locker.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <chrono>
#include <utility>

namespace asio = boost::asio;

/// Adds to a counter that other processes add to as well. To add is to read and then, after a while, to write: a
/// process that reads in between writes the same number again, and one of the two updates is lost.
class worker
{
public:
    worker(counter total, report_line supervisor) : total_(std::move(total)), supervisor_(supervisor) {}

    asio::awaitable<void> add_unlocked(int times) const
    {
        for (int i = 0; i < times; ++i)
            co_await add_one();
    }

    /// The lock makes each update one step. A holder that is killed in the middle of it cannot release: the others wait
    /// until its ttl has passed. A living holder's lease is renewed for as long as its update takes.
    asio::awaitable<void> add_locked(colock::locker locker, int times) const
    {
        for (int i = 0; i < times; ++i)
            co_await locker.with_lock("shared counter", [this] { return add_one(); });
    }

private:
    asio::awaitable<void> add_one() const
    {
        supervisor_.say(event::adding); // and is killed for it now and then
        const long value = total_.read();
        co_await asio::steady_timer(co_await asio::this_coro::executor, std::chrono::milliseconds(2)).async_wait();
        total_.write(value + 1);
        supervisor_.say(event::added);
    }

    counter total_;
    report_line supervisor_;
};
