// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/peer.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace colock::testing {

/// A fake Sentinel. The master that it names is the server at the port `master`, which a test can change.
class sentinel
{
public:
    explicit sentinel(std::uint16_t first)
        : master(first), speaks_(io_,
                             [this](peer::talk& with) -> asio::awaitable<void> {
                                 while (co_await with.hear("GET-MASTER-ADDR-BY-NAME"))
                                     co_await with.say(answer());
                             }),
          thread_([this] { io_.run(); })
    {
    }
    ~sentinel()
    {
        io_.stop();
        thread_.join();
    }
    sentinel(const sentinel&) = delete;
    sentinel& operator=(const sentinel&) = delete;

    [[nodiscard]] std::string url() const { return "redis+sentinel://" + address() + "/main"; }
    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(speaks_.port()); }

    std::atomic<std::uint16_t> master;

private:
    [[nodiscard]] std::string answer() const
    {
        const auto port = std::to_string(master);
        return "%1\r\n$4\r\nrole\r\n$8\r\nsentinel\r\n*2\r\n$9\r\n127.0.0.1\r\n$" + std::to_string(port.size()) +
               "\r\n" + port + "\r\n";
    }

    asio::io_context io_;
    peer speaks_;
    std::thread thread_;
};

} // namespace colock::testing
