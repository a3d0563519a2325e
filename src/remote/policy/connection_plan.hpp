// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/policy/backoff.hpp"
#include "remote/policy/connection_events.hpp"

#include <colock/clock.hpp>

#include <optional>

namespace colock::remote {

/// When a connection is made, made again, given up and closed, and what is told of that. Does none of
/// it, and reads no clock: it is told what happens, and answers what to do.
///
/// Thread safety: none.
class connection_plan
{
public:
    enum class phase : unsigned char
    {
        /// Nothing to do, or refused.
        idle,
        /// Until the server has been found and greeted, and what the last connection has left is settled.
        connecting,
        open,
        /// It has ended; whoever has something under way on it is being told so.
        ending,
        /// Connects again when that time is over.
        waiting,
    };
    enum class event : unsigned char
    {
        /// Somebody asks for something.
        wanted,
        /// Requests may be sent.
        opened,
        /// The attempt has failed; another may succeed.
        failed,
        /// It has failed in a way that no other attempt would mend. Whoever waits for the connection is told.
        refused,
        /// It has ended, standing or not.
        lost,
        /// The same, because nothing was heard for so long.
        silent,
        /// All that was under way on it has been told of its end.
        told,
        /// The time to wait is over.
        due,
        /// A turn of the owner's timer.
        turn,
        /// The owner closes it, whatever is unanswered.
        given_up,
        /// In the child of a fork: the connection is the parent's.
        forked,
    };
    /// Of whoever uses the connection.
    struct demand
    {
        /// Something waits to be sent or to be answered, or somebody listens.
        bool needed;
        /// Something was sent, and is not answered: then it is needed, too.
        bool under_way;
        /// Something was sent since the last turn.
        bool used = false;
    };
    /// Beside that connection.
    struct surroundings
    {
        /// The owner has other connections.
        bool others_open;
        /// Somebody who was answered, or given up, is still to be told.
        bool has_pending_completions = false;
        /// Somebody waits for a close.
        bool closing = false;
    };
    struct action
    {
        enum class kind : unsigned char
        {
            none,
            connect,
            /// Let go of the connection, and tell of `due` after the delay.
            wait,
            /// Let go of the connection.
            rest,
        };
        kind what = kind::none;
        connection_events::item say = connection_events::item::none;
        lease_clock::duration delay{};
    };

    /// \param idle_timeout how long it is kept that nobody uses; duration::max(): until it is told to close
    /// \param all of the backend's connections; lives as long
    connection_plan(lease_clock::duration idle_timeout, connection_events& all) noexcept
        : idle_timeout_(idle_timeout), all_(&all)
    {
    }

    [[nodiscard]] action next(lease_clock::time_point now, event what, demand by);

    [[nodiscard]] phase current() const noexcept { return phase_; }
    [[nodiscard]] bool idle() const noexcept { return phase_ == phase::idle; }
    [[nodiscard]] bool open() const noexcept { return phase_ == phase::open; }
    [[nodiscard]] bool ending() const noexcept { return phase_ == phase::ending; }
    /// Requests may be sent.
    [[nodiscard]] bool takes_requests() const noexcept { return open() && !demoted_; }

    /// What it leads to should not be used any more: no request is sent on it, and it is to be closed once none is
    /// under way.
    void demote() noexcept { demoted_ = true; }
    [[nodiscard]] bool demoted() const noexcept { return demoted_; }

    /// Closed as soon as nobody needs it, until somebody wants it again.
    void close(lease_clock::time_point by) noexcept;
    void cancel_close() noexcept;
    [[nodiscard]] bool closes() const noexcept { return closes_; }
    /// The time that the close was given is over: what is unsent fails, and no answer is waited for.
    [[nodiscard]] bool out_of_time(lease_clock::time_point now) const noexcept { return close_by_ <= now; }
    /// True once nothing is left of what was to be closed, or its time is over: whoever closes is told, and hears
    /// nothing more. The next close has its own time.
    [[nodiscard]] bool finish_close(lease_clock::time_point now, surroundings beside) noexcept;
    /// It was closed, and somebody uses it again. While a close is under way the connection stays to be closed as soon
    /// as nobody needs it: the request may belong to a call that the close waits for.
    void reopen() noexcept { closes_ = close_by_ != lease_clock::time_point::max(); }

    /// The owner is gone: nothing is kept beyond what is under way.
    void retire() noexcept { retired_ = true; }
    [[nodiscard]] bool retired() const noexcept { return retired_; }

    /// How soon the owner's timer has to turn again: nothing if not at all, so that the event loop may run out of work;
    /// duration::max() if that makes no difference.
    /// \param pace while there is something to look at
    [[nodiscard]] std::optional<lease_clock::duration> turns_again_in(
        demand by, surroundings beside, lease_clock::duration pace) const noexcept;

private:
    [[nodiscard]] action opened(lease_clock::time_point now);
    [[nodiscard]] action failed(demand by);
    [[nodiscard]] action lost(event how, demand by);
    [[nodiscard]] action again(demand by, connection_events::item say);
    [[nodiscard]] action rest(connection_events::item say = connection_events::item::none) noexcept;
    [[nodiscard]] action turn(lease_clock::time_point now, demand by);
    void fork() noexcept;

    lease_clock::duration idle_timeout_;
    connection_events* all_;
    phase phase_ = phase::idle;
    lease_clock::time_point used_{};
    backoff delays_;
    bool at_once_ = false;
    bool demoted_ = false;
    bool given_up_ = false;
    bool retired_ = false;
    bool closes_ = false;
    lease_clock::time_point close_by_ = lease_clock::time_point::max();
};

} // namespace colock::remote
