// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/policy/liveness.hpp"

#include <colock/clock.hpp>

#include <cstdint>
#include <deque>

namespace colock::zookeeper::detail {

/// How long a session lives for certain, when it has to prove that it does, and when its connection is given up. Does
/// none of it, and reads no clock: it is told what happens, and answers what to do.
///
/// A follower that was cut off from its leader goes on answering reads and pings, while the leader counts the session
/// out and gives its locks to others. So only what went through the leader proves anything: a *beat*, which is a
/// write, any other write, and a handshake. And the leader's own count for the session is moved by the follower's next
/// ping, up to half a tick after the answer: a write counts once another one is answered that was sent after that.
///
/// Thread safety: none.
class heartbeat
{
public:
    using time_point = lease_clock::time_point;
    using duration = lease_clock::duration;

    struct terms
    {
        /// The smallest timeout that any server may grant, which may be less than this one has granted.
        duration session_timeout;
        /// The server's unit of time. The session's bound counts on it: it must not be shorter than the server's.
        duration server_tick;
    };
    enum class action : unsigned char
    {
        none,
        /// Send a write, and tell `beat_ended` when it was answered or has failed.
        beat,
        /// Nothing was heard for so long that another server may do better.
        cut,
    };

    explicit heartbeat(terms agreed) noexcept;

    /// How often `turn` is to be called. All waits are counted in these turns, never in time that has passed: while
    /// the event loop stands still nothing is read, and no turn is missed.
    [[nodiscard]] duration pace() const noexcept;

    /// A connection is being made.
    void opening() noexcept;
    /// The server has answered the handshake that was sent then.
    void opened(time_point sent, terms agreed);
    void lost() noexcept;

    /// A write was answered on this connection.
    void answered(time_point sent, time_point now);
    void beat_ended(time_point now) noexcept;

    [[nodiscard]] action turn(time_point now) noexcept;

    /// time_point::min() before the first handshake. Goes back only where a handshake has brought a shorter timeout.
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
    remote::liveness life_;
    /// Handshake and answered writes of this connection.
    std::uint64_t heard_ = 0;
    bool beats_ = false;
    time_point beat_due_{};
    time_point valid_until_ = time_point::min();
    /// Answered, and not confirmed by a later one; oldest first, with a distance, so that they are few.
    std::deque<write> unconfirmed_;
};

} // namespace colock::zookeeper::detail
