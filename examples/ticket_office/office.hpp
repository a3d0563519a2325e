// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "hall.hpp"

#include <colock/locker.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

#include <charconv>
#include <chrono>
#include <exception>
#include <string>
#include <utility>
#include <vector>

/// A TCP server that sells seats. A client sends the number of a block as a line. The answer is the number of a seat,
/// or "sold out".
///
/// A sale reads and, after a delay, writes. In between, another connection could read the same state. The lock of the
/// block makes the sale atomic.
class ticket_office
{
public:
    ticket_office(colock::locker locker, hall& seats, bool locked)
        : locker_(std::move(locker)), seats_(seats), locked_(locked)
    {
    }

    asio::awaitable<void> listen(asio::ip::tcp::acceptor acceptor)
    {
        for (;;) {
            auto socket = co_await acceptor.async_accept(asio::deferred);
            asio::co_spawn(acceptor.get_executor(), serve(std::move(socket)), [this](std::exception_ptr failure) {
                if (failure && !failure_)
                    failure_ = std::move(failure);
            });
        }
    }

    const std::vector<std::chrono::nanoseconds>& waits() const { return waits_; }
    /// The first error that ended a connection. Null if only clients have ended connections.
    std::exception_ptr failure() const { return failure_; }

private:
    asio::awaitable<void> serve(asio::ip::tcp::socket client)
    {
        std::string line;
        for (;;) {
            const auto [error, length] = co_await asio::async_read_until(
                client, asio::dynamic_buffer(line, 64), '\n', asio::as_tuple(asio::deferred));
            if (error)
                co_return;
            std::size_t block = 0;
            std::from_chars(line.data(), line.data() + line.size(), block);
            line.erase(0, length);
            const auto seat = co_await sell(block % seats_.blocks());
            const std::string answer = seat ? "seat " + std::to_string(*seat) + '\n' : "sold out\n";
            co_await asio::async_write(client, asio::buffer(answer), asio::deferred);
        }
    }

    asio::awaitable<std::optional<std::size_t>> sell(std::size_t block)
    {
        if (!locked_)
            co_return co_await sell_next_free(block);

        const auto start = std::chrono::steady_clock::now();
        co_return co_await locker_.with_lock("block:" + std::to_string(block), [&](colock::lock& held) {
            waits_.push_back(std::chrono::steady_clock::now() - start);
            seats_.note_fence(block, held.fence());
            return sell_next_free(block);
        });
    }

    asio::awaitable<std::optional<std::size_t>> sell_next_free(std::size_t block)
    {
        const auto seat = co_await seats_.find_free(block);
        if (seat)
            co_await seats_.sell(block, *seat);
        co_return seat;
    }

    colock::locker locker_;
    hall& seats_;
    const bool locked_;
    std::vector<std::chrono::nanoseconds> waits_;
    std::exception_ptr failure_;
};
