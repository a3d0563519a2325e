// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/policy/backoff.hpp"
#include "remote/policy/connection_plan.hpp"

#include <colock/clock.hpp>

namespace colock::remote {

/// Of a connection that only brings events (messages, a change stream), beside the one that requests go on: when it is
/// made and closed, and when waiters have to poll instead. Each new one means that whoever waits has to look again.
/// Does none of it: it is told what happens, and answers what to do.
///
/// Thread safety: none.
class listening_plan
{
public:
    enum class event : unsigned char
    {
        /// Somebody may have begun to wait.
        wanted,
        /// It may bring events now; so it does from where requests go, or from elsewhere.
        greeted_here,
        greeted_elsewhere,
        /// The server has confirmed that events arrive.
        confirmed,
        /// It was asked for events, and refused; that may have passed at the next attempt.
        refused,
        /// The user has not got the right.
        denied,
        ended,
        /// The time to wait is over.
        due,
        /// A turn of the owner's timer.
        turn,
        /// The connection for requests is a new one, and goes to where events come from, or elsewhere.
        requests_here,
        requests_elsewhere,
        /// In the child of a fork: the connection is the parent's.
        forked,
    };
    /// At the moment.
    struct view
    {
        /// Somebody waits, or did a moment ago.
        bool wanted;
        connection_plan::phase requests;
    };
    struct action
    {
        enum class kind : unsigned char
        {
            none,
            connect,
            /// Make the connection for requests first: it finds the server, and meets its refusals.
            connect_requests,
            /// Ask for the events of everything that is not asked for yet.
            listen,
            /// The same, and warn: these events come from elsewhere.
            listen_elsewhere,
            close,
            /// Ask for the events of everything again, as soon as there is a connection: the user may have been given
            /// the right since.
            ask_anew,
            /// Tell of `due` after the delay.
            wait,
            /// Do not tell of it.
            stop_waiting,
        };
        kind what = kind::none;
        lease_clock::duration delay{};
    };

    [[nodiscard]] action next(event what, view seen);

    /// Events can be asked for.
    [[nodiscard]] bool ready() const noexcept { return phase_ == phase::ready; }
    /// Waiters poll: there are no events for them.
    [[nodiscard]] bool polls() const noexcept { return polls_; }

private:
    enum class phase : unsigned char
    {
        closed,
        opening,
        ready,
        /// Nothing more is asked for, and its end is still to come.
        closing,
        waiting,
    };
    [[nodiscard]] action wanted(view seen);
    [[nodiscard]] action greeted(action::kind listens) noexcept;
    [[nodiscard]] action ended(view seen);
    [[nodiscard]] action turn(view seen) noexcept;
    [[nodiscard]] action requests_moved(event where) noexcept;

    phase phase_ = phase::closed;
    bool polls_ = false;
    backoff delays_;
    /// How often, since requests have gone where they go now, events were found to come from elsewhere.
    unsigned detours_ = 0;
};

} // namespace colock::remote
