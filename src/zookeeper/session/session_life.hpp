// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/zk_client.hpp"
#include "zookeeper/session/heartbeat.hpp"

#include <colock/clock.hpp>
#include <colock/spi/lease.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

namespace colock::zookeeper::detail {

/// What is known of one session: who it is to the server, how its connection stands, and what its leases are tied to.
/// How long it lives for certain, `heartbeat` decides. Does no I/O, and reads no clock.
///
/// Thread safety: none.
class session_life
{
public:
    using time_point = lease_clock::time_point;
    enum class change : unsigned char
    {
        none,
        connected,
        suspended,
    };

    /// \param session_timeout asked for; the server decides
    /// \param server_tick default: 2 s, or half the timeout that leases count on if that is less
    /// \param smallest_timeout that any server may grant, as far as is known
    session_life(std::chrono::milliseconds session_timeout, std::optional<std::chrono::milliseconds> server_tick,
        std::optional<std::chrono::milliseconds> smallest_timeout = {});

    [[nodiscard]] std::int64_t id() const noexcept { return id_; }
    /// What the server has granted.
    [[nodiscard]] std::chrono::milliseconds timeout() const noexcept { return timeout_; }
    /// The timeout that leases count on: the smallest that any server may grant. A server shortens the session when it
    /// receives the request to go on with it, and the answer that would tell us may be lost.
    [[nodiscard]] std::chrono::milliseconds counted_timeout() const noexcept;
    /// The highest number of a transaction of ours that the server has told in this session; 0 before the first.
    [[nodiscard]] std::int64_t newest_transaction() const noexcept { return newest_transaction_; }
    /// So few ticks of the server's that leases are much shorter than that.
    [[nodiscard]] bool is_short() const noexcept;
    /// What a grant of now is tied to; null before it was connected.
    [[nodiscard]] const std::shared_ptr<session_bound>& bound() const noexcept { return bound_; }
    [[nodiscard]] zk_client::phase seen() const noexcept { return seen_; }
    [[nodiscard]] bool connected() const noexcept { return seen_ == zk_client::phase::connected; }

    /// When beats are due, and when a connection is given up.
    [[nodiscard]] heartbeat& heart() noexcept { return heart_; }

    /// \param before the driver was asked to do something
    [[nodiscard]] change saw(zk_client::phase now, time_point before) noexcept;
    /// False if it was away for too long, or if leases counted on more time than is granted: the bound is another one.
    [[nodiscard]] bool greeted(std::int64_t id, std::chrono::milliseconds timeout);
    /// False as above.
    [[nodiscard]] bool answered(const told_list& fresh, time_point now);
    void end() noexcept;

private:
    [[nodiscard]] heartbeat::terms terms() const noexcept;
    [[nodiscard]] bool raise();

    const std::optional<std::chrono::milliseconds> server_tick_;
    std::chrono::milliseconds timeout_;
    std::optional<std::chrono::milliseconds> smallest_timeout_;
    std::int64_t id_ = 0;
    std::int64_t newest_transaction_ = 0;
    zk_client::phase seen_ = zk_client::phase::disconnected;
    /// When the handshake was sent.
    time_point greeted_{};
    heartbeat heart_;
    std::shared_ptr<session_bound> bound_;
};

} // namespace colock::zookeeper::detail
