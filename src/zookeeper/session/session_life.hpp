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

namespace colock::inline v0::zookeeper::detail {

/// State of one session: its id, the state of its connection, and the session_lease that its grants are tied to.
/// `session_validity` computes until when the session certainly lives. Performs no I/O and reads no clock.
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

    /// \param session_timeout requested timeout; the server decides
    /// \param connect_timeout how long one server may take to accept a connection and the session
    /// \param server_tick default: 2 s, or half of the timeout that leases count on if that is less
    /// \param smallest_timeout the smallest timeout that any server may grant, as far as it is known
    session_life(std::chrono::milliseconds session_timeout, std::chrono::milliseconds connect_timeout,
        std::optional<std::chrono::milliseconds> server_tick,
        std::optional<std::chrono::milliseconds> smallest_timeout = {});

    [[nodiscard]] std::int64_t id() const noexcept { return id_; }
    /// The timeout that the server has granted.
    [[nodiscard]] std::chrono::milliseconds timeout() const noexcept { return timeout_; }
    /// The timeout that leases count on: the smallest that any server may grant. A server shortens the session when it
    /// receives the request to resume it, and the reply with the new timeout may be lost.
    [[nodiscard]] std::chrono::milliseconds counted_timeout() const noexcept;
    /// The highest number of a transaction that the server has reported in this session; 0 before the first one.
    [[nodiscard]] std::int64_t newest_transaction() const noexcept { return newest_transaction_; }
    /// Whether the timeout has so few ticks of the server that leases are much shorter than the timeout.
    [[nodiscard]] bool has_few_ticks() const noexcept;
    /// The session_lease of new grants; null before the first connection.
    [[nodiscard]] const std::shared_ptr<session_lease>& lease() const noexcept { return lease_; }
    [[nodiscard]] zk_client::phase phase() const noexcept { return phase_; }
    [[nodiscard]] bool connected() const noexcept { return phase_ == zk_client::phase::connected; }
    /// Whether it is not verified yet that the session may be used on this connection. Leases are not extended
    /// meanwhile.
    [[nodiscard]] bool is_unverified() const noexcept { return is_unverified_; }

    /// Decides when beats are due, and when a connection is given up.
    [[nodiscard]] heartbeat& get_heartbeat() noexcept { return heartbeat_; }

    /// \param before a time before the driver was called
    [[nodiscard]] change note_phase(zk_client::phase current, time_point before) noexcept;
    /// The session has to be verified now.
    void note_greeting(std::int64_t id, std::chrono::milliseconds timeout);
    /// Returns false if the session was disconnected for too long, or if leases counted on more time than is granted
    /// now. In both cases the old session_lease has ended, and a new one has replaced it.
    [[nodiscard]] bool note_verified();
    /// Returns false if the session_lease has ended and was replaced. If a reply says that the session has ended, the
    /// phase is `expired` from now on, although the driver is still connected.
    [[nodiscard]] bool note_reports(const driver_report_list& reports, time_point now);
    /// Ends the session_lease: all locks of the session are lost.
    void end_lease() noexcept;
    void end() noexcept;

private:
    [[nodiscard]] session_terms terms() const noexcept;
    [[nodiscard]] bool extend_lease();

    const std::optional<std::chrono::milliseconds> server_tick_;
    std::chrono::milliseconds timeout_;
    std::optional<std::chrono::milliseconds> smallest_timeout_;
    std::int64_t id_ = 0;
    std::int64_t newest_transaction_ = 0;
    zk_client::phase phase_ = zk_client::phase::disconnected;
    bool is_unverified_ = false;
    /// Time at which the handshake was sent.
    time_point greeting_sent_at_{};
    heartbeat heartbeat_;
    std::shared_ptr<session_lease> lease_;
};

} // namespace colock::inline v0::zookeeper::detail
