// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <deque>

namespace colock::inline v0::zookeeper::detail {

/// The terms of a session, which a server and its client have agreed on.
struct session_terms
{
    /// The smallest timeout that any server may grant. The current server may have granted more.
    lease_clock::duration timeout;
    /// The server's tickTime. A value below the actual tickTime would make the session's lease too long.
    lease_clock::duration server_tick;
};

/// Computes until when a session certainly lives, from the times of its requests and replies.
///
/// A follower that is cut off from its leader still answers reads and pings, while the leader lets the session expire
/// and other clients get its locks. So only requests that go through the leader prove anything: writes, and the
/// handshake. The leader restarts the timeout of the session when it receives the follower's next ping, up to half a
/// tick after the reply. So one answered write is not enough. It counts only after a second write has been answered,
/// which must have been sent at least half a tick after the first reply.
///
/// Thread safety: none.
class session_validity
{
public:
    using time_point = lease_clock::time_point;

    explicit session_validity(session_terms terms) noexcept : terms_(terms) {}

    [[nodiscard]] const session_terms& terms() const noexcept { return terms_; }

    /// The server has answered the handshake that was sent at `sent_at`.
    void on_connected(time_point sent_at, session_terms terms);
    void on_disconnected() noexcept { unconfirmed_.clear(); }
    /// A write was answered on this connection.
    void on_write_answered(time_point sent_at, time_point now);

    /// Returns the time until which the session certainly lives; time_point::min() before the first handshake.
    /// Decreases only if a handshake has brought a shorter timeout or a longer tick.
    [[nodiscard]] time_point valid_until() const noexcept { return valid_until_; }

private:
    struct write
    {
        time_point sent_at;
        time_point answered_at;
    };

    void prove(time_point sent_at) noexcept;

    session_terms terms_;
    time_point valid_until_ = time_point::min();
    /// Answered writes that no later write has confirmed, oldest first. Writes soon after the last recorded one are not
    /// recorded, so that there are few.
    std::deque<write> unconfirmed_;
};

} // namespace colock::inline v0::zookeeper::detail
