// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/connection/validated_stream.hpp"
#include "redis/settings.hpp"
#include "remote/policy/liveness.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/redis/request.hpp>

#include <chrono>
#include <cstdint>
#include <memory>

namespace colock::inline v0::redis::detail {

/// Closes a connection that is not established within `connect_timeout`. Later sends a PING on a silent connection, and
/// closes the connection if it is silent for two health intervals.
///
/// Thread safety: none; belongs to the strand of the connection.
class health_check
{
public:
    /// \param received_nodes counts the nodes that have arrived on the connection
    health_check(const asio::any_io_executor& strand, const settings& config, driver_connection& connection,
        std::uint64_t& received_nodes);

    /// Starts the checks. Until they end, they keep `owner` alive, which has to own the connection and this object.
    void start(std::shared_ptr<void> owner);
    /// Ends the limit of `connect_timeout`, because the server has answered the greeting.
    void note_established(std::shared_ptr<void> owner);
    /// Ends the checks, because the connection has ended.
    void stop();
    /// Returns whether the connection was closed because the server was silent.
    [[nodiscard]] bool is_silent() const noexcept { return is_silent_; }

private:
    void check(std::shared_ptr<void> owner);
    void give_up();
    void send_ping(std::shared_ptr<void> owner);

    /// Interval of the timer until the connection is established.
    const std::chrono::steady_clock::duration connect_interval_;
    /// Interval of the timer afterwards: half a health interval.
    const std::chrono::steady_clock::duration interval_;
    /// Number of timer events before the connection was established. The limit is counted in timer events, because no
    /// answer can be read while the event loop is blocked.
    unsigned connect_checks_ = 0;
    remote::liveness liveness_;
    asio::steady_timer timer_;
    bool is_established_ = false;
    bool is_silent_ = false;
    bool is_stopped_ = false;
    boost::redis::request ping_;
    driver_connection& connection_;
    std::uint64_t& received_nodes_;
};

} // namespace colock::inline v0::redis::detail
