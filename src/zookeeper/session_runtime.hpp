// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/session.hpp"
#include "zookeeper/socket_watch.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <cstddef>
#include <vector>

namespace colock::zookeeper::detail {

/// What has to go before the context does.
struct session::runtime
{
    explicit runtime(const asio::any_io_executor& executor)
        : strand(executor), socket(executor), turns(executor), retry(executor), closer(executor), names(executor)
    {
    }

    asio::any_io_executor strand;
    socket_watch socket;
    asio::steady_timer turns;
    asio::steady_timer retry;
    asio::steady_timer closer;
    asio::ip::basic_resolver<asio::ip::tcp, asio::any_io_executor> names;
    std::vector<asio::ip::tcp::endpoint> servers;
    std::size_t unresolved = 0;

    /// Of the socket: one wait for each is under way.
    bool reading = false;
    bool writing = false;
    /// A step is posted already; one is under way.
    bool posted = false;
    bool stepping = false;
    bool corked = false;
    /// Between two rounds through the list of servers.
    bool resting = false;

    /// Told when all else was.
    completion<bool> closed;
    bool proven = false;
    /// The last bytes that the server has sent.
    std::array<std::byte, 20> tail{};
};

} // namespace colock::zookeeper::detail
