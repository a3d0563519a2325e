// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/policy/liveness.hpp"

#include <colock/clock.hpp>

#include <cstdint>
#include <deque>

namespace colock::zookeeper::detail {

/// Decides until when a session certainly lives, when a heartbeat is due, and when the connection is given up. Performs
/// no I/O and reads no clock: the caller reports events, and carries out the returned actions.
///
/// A follower that is cut off from its leader still answers reads and pings, while the leader lets the session expire
/// and other clients get its locks. So only requests that go through the leader prove anything: a *beat*, which is a
/// write, any other write, and a handshake. The leader restarts the timeout of the session when it receives the
/// follower's next ping, up to half a tick after the reply. So a write counts only once a second write has been
/// answered that was sent at least half a tick after the first reply.
///
/// Thread safety: none.
class heartbeat
{
public:
    using time_point = lease_clock::time_point;
    using duration = lease_clock::duration;

    struct terms
    {
        /// The smallest timeout that any server may grant. The current server may have granted more.
        duration session_timeout;
        /// The server's tickTime. A value below the actual tickTime would make the session's bound too late.
        duration server_tick;
    };
    enum class action : unsigned char
    {
        none,
        /// Send a write, and call `on_beat_ended` when the write was answered or has failed.
        beat,
        /// Shut the connection down: nothing was received for so long that another server has to be tried.
        disconnect,
    };

    explicit heartbeat(terms agreed) noexcept;

    /// Interval in which `check` has to be called. Waiting times are counted in these calls, not by a clock: while the
    /// event loop does not run, nothing is read, and no call is counted as missed.
    [[nodiscard]] duration check_interval() const noexcept;

    /// A connection attempt has begun.
    void on_connecting() noexcept;
    /// The server has answered the handshake that was sent at `sent`.
    void on_connected(time_point sent, terms agreed);
    void on_disconnected() noexcept;

    /// A write was answered on this connection.
    void on_write_answered(time_point sent, time_point now);
    void on_beat_ended(time_point now) noexcept;

    [[nodiscard]] action check(time_point now) noexcept;

    /// Returns the time until which the session certainly lives; time_point::min() before the first handshake.
    /// Decreases only if a handshake has brought a shorter timeout or a longer tick.
    [[nodiscard]] time_point valid_until() const noexcept { return valid_until_; }

private:
    struct write
    {
        time_point sent;
        time_point answered;
    };
    enum class phase : unsigned char
    {
        closed,
        opening,
        open,
    };

    void prove(time_point sent) noexcept;

    terms agreed_;
    phase phase_ = phase::closed;
    remote::liveness liveness_;
    /// Number of replies on this connection: the handshake and the writes.
    std::uint64_t reply_count_ = 0;
    bool is_beat_in_flight_ = false;
    time_point next_beat_{};
    time_point valid_until_ = time_point::min();
    /// Answered writes that no later write has confirmed, oldest first. Writes soon after the last recorded one are not
    /// recorded, so that there are few.
    std::deque<write> unconfirmed_;
};

} // namespace colock::zookeeper::detail
