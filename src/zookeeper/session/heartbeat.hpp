// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/policy/liveness.hpp"
#include "zookeeper/session/session_validity.hpp"

#include <colock/clock.hpp>

#include <cstdint>

namespace colock::inline v0::zookeeper::detail {

/// Decides when a *beat*, a write that keeps a session alive, is due, and when the connection is given up. Performs no
/// I/O and reads no clock: the caller reports events, and carries out the returned actions. `session_validity` computes
/// until when the session lives.
///
/// Thread safety: none.
class heartbeat
{
public:
    using time_point = lease_clock::time_point;
    using duration = lease_clock::duration;

    enum class action : unsigned char
    {
        none,
        /// Send a write, and call `on_beat_ended` when the write was answered or has failed.
        beat,
        /// Shut the connection down: nothing was received for so long that another server has to be tried.
        disconnect,
    };

    /// \param connect_timeout how long a connect and a handshake may take together; a sixth of the session timeout if
    /// that is less
    heartbeat(session_terms terms, duration connect_timeout) noexcept;

    /// Interval in which `check` has to be called; another one after each call of `on_connecting`. Waiting times are
    /// counted in these calls, not by a clock: while the event loop does not run, nothing is read, and no call is
    /// counted as missed.
    [[nodiscard]] duration check_interval() const noexcept;

    /// A connection attempt has begun.
    void on_connecting() noexcept;
    /// The server has answered the handshake that was sent at `sent_at`.
    void on_connected(time_point sent_at, session_terms terms);
    void on_disconnected() noexcept;

    /// A write was answered on this connection.
    void on_write_answered(time_point sent_at, time_point now);
    void on_beat_ended(time_point now) noexcept;

    [[nodiscard]] action check(time_point now) noexcept;
    /// Returns whether a beat can be sent before it is due. The caller then sends it, as after `action::beat`.
    [[nodiscard]] bool begin_early_beat() noexcept;
    /// The server has answered, but not carried out the beat. The next check sends it again.
    void on_beat_refused() noexcept;

    [[nodiscard]] time_point valid_until() const noexcept { return expiry_.valid_until(); }

private:
    enum class phase : unsigned char
    {
        closed,
        opening,
        open,
    };

    const duration connect_timeout_;
    session_validity expiry_;
    phase phase_ = phase::closed;
    remote::liveness liveness_;
    /// Number of replies on this connection: the handshake and the writes.
    std::uint64_t reply_count_ = 0;
    bool is_beat_in_flight_ = false;
    time_point next_beat_{};
};

} // namespace colock::inline v0::zookeeper::detail
