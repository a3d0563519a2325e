// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/policy/backoff.hpp"
#include "remote/policy/connection_plan.hpp"

#include <colock/clock.hpp>

namespace colock::inline v0::remote {

/// State machine of a connection that only receives events (messages, a change stream), in addition to the connection
/// for requests. Decides when it is established and closed, and when waiters must poll instead. After each new
/// connection, waiters must check the lock again. Performs no I/O: the caller passes in each event and executes the
/// returned action.
///
/// Thread safety: none.
class listening_plan
{
public:
    enum class event : unsigned char
    {
        /// A caller may have begun to wait.
        needed,
        /// The connection can receive events now. It leads to the server that the requests go to (`here`), or to
        /// another server (`elsewhere`).
        connected_here,
        connected_elsewhere,
        /// The server has confirmed the subscription.
        confirmed,
        /// The server refused the subscription; another attempt may succeed.
        refused,
        /// The user has no permission for the subscription.
        denied,
        closed,
        /// The delay of `action::kind::wait` has passed.
        due,
        /// The owner's timer has fired.
        timer,
        /// The connection for requests has been replaced. It leads to the server that the events come from (`here`), or
        /// to another server (`elsewhere`).
        requests_here,
        requests_elsewhere,
    };
    /// The current state of the client.
    struct view
    {
        /// A caller waits, or has waited recently.
        bool needed;
        connection_plan::phase requests;
    };
    struct action
    {
        enum class kind : unsigned char
        {
            none,
            connect,
            /// Establish the connection for requests first, because it locates the server and handles its refusals.
            connect_requests,
            /// Subscribe to the events of all sources that are not subscribed yet.
            listen,
            /// Like `listen`, and warn that the events come from another server.
            listen_elsewhere,
            close,
            /// Subscribe to the events of all sources again as soon as there is a connection, because the user may have
            /// been given the permission.
            subscribe_again,
            /// Send `event::due` after the delay.
            wait,
            /// Cancel the delay of `wait`.
            stop_waiting,
        };
        kind step = kind::none;
        lease_clock::duration delay{};
    };

    [[nodiscard]] action resume(event input, view current);

    /// Returns whether events can be subscribed to.
    [[nodiscard]] bool ready() const noexcept { return phase_ == phase::ready; }
    /// Returns whether waiters must poll because they cannot receive events.
    [[nodiscard]] bool polls() const noexcept { return polls_; }

private:
    enum class phase : unsigned char
    {
        closed,
        opening,
        ready,
        /// The connection is being closed; its end has not been reported yet.
        closing,
        waiting,
    };
    [[nodiscard]] action on_needed(view current);
    [[nodiscard]] action on_connected(action::kind step) noexcept;
    [[nodiscard]] action on_closed(view current);
    [[nodiscard]] action on_timer(view current) noexcept;
    [[nodiscard]] action on_requests_moved(event input) noexcept;

    phase phase_ = phase::closed;
    bool polls_ = false;
    backoff delays_;
    /// Number of new connections that led to another server since the connection for requests was last replaced.
    unsigned wrong_server_count_ = 0;
};

} // namespace colock::inline v0::remote
