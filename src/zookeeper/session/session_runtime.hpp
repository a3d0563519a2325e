// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/policy/backoff.hpp"
#include "zookeeper/driver/driver_socket.hpp"
#include "zookeeper/driver/session_closer.hpp"
#include "zookeeper/session/server_lookup.hpp"
#include "zookeeper/session/session.hpp"

#include <colock/spi/completion.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <memory>
#include <vector>

namespace colock::inline v0::zookeeper::detail {

/// Asio objects and other state, destroyed when the execution context shuts down.
struct session::runtime
{
    runtime(const asio::any_io_executor& executor, const std::vector<endpoint>& hosts)
        : strand(executor), servers(std::make_shared<server_lookup>(executor, hosts)), socket(executor),
          check_timer(executor), retry_timer(executor), close_timer(executor)
    {
    }

    asio::any_io_executor strand;
    const std::shared_ptr<server_lookup> servers;
    driver_socket socket;
    asio::steady_timer check_timer;
    asio::steady_timer retry_timer;
    remote::backoff back_off{};

    /// Whether a call of `step` is posted, and whether one is running.
    bool is_step_posted = false;
    bool is_stepping = false;
    /// A handler is posted that sends the requests, unless they are sent earlier.
    bool is_send_posted = false;
    /// The requests are followed by a call of `send`, so that no handler is posted for them.
    bool is_send_announced = false;
    /// The session waits between two passes through the list of servers.
    bool is_waiting_to_retry = false;

    asio::steady_timer close_timer;
    session_closer closer{};
    /// Completion of `close`, called after all other completions.
    completion<bool> on_closed{};
    /// Result of `close`: whether the session is proven to have ended at the server.
    bool is_proven = false;
};

} // namespace colock::inline v0::zookeeper::detail
