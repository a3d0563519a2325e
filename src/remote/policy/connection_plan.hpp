// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/policy/backoff.hpp"
#include "remote/policy/connection_events.hpp"

#include <colock/clock.hpp>

#include <chrono>
#include <optional>

namespace colock::inline v0::remote {

/// State machine that decides when a connection is established, established again, given up and closed, and what is
/// reported about it. It performs no I/O and reads no clock: the caller passes in each event and executes the returned
/// action.
///
/// Thread safety: none.
class connection_plan
{
public:
    enum class phase : unsigned char
    {
        /// There is nothing to do, or the server has refused the connection.
        idle,
        /// The server is being located and greeted, and the unanswered requests of the last connection are being
        /// settled.
        connecting,
        open,
        /// The connection has ended. The operations that were in flight on it are being notified.
        draining,
        /// Connects again after the delay.
        waiting,
    };
    enum class event : unsigned char
    {
        /// An operation needs the connection.
        needed,
        /// The connection is established: requests can be sent.
        opened,
        /// The attempt to connect has failed; another attempt may succeed.
        failed,
        /// The attempt to connect has failed, and no other attempt would succeed. Operations that wait for the
        /// connection fail.
        refused,
        /// The connection has ended, or the attempt to connect has ended.
        lost,
        /// Like `lost`, because the server has sent nothing for too long.
        silent,
        /// All operations that were in flight have been notified of the end of the connection.
        drained,
        /// The delay of `action::kind::wait` has passed.
        due,
        /// The owner's timer has fired.
        timer,
        /// The owner closes the connection, even if requests are unanswered.
        given_up,
    };
    /// How the users of the connection need it.
    struct demand
    {
        /// An operation waits to be sent or answered, or a caller waits for events.
        bool needed;
        /// A request was sent and is not answered. This implies `needed`.
        bool has_in_flight;
        /// A request was sent since the last timer event.
        bool used = false;
    };
    /// State of the client apart from this connection.
    struct client_state
    {
        /// The owner has other open connections.
        bool others_open;
        /// An operation is not answered, or its completion has not been called yet.
        bool has_pending_completions = false;
        /// A close is in progress.
        bool closing = false;
    };
    struct action
    {
        enum class kind : unsigned char
        {
            none,
            connect,
            /// Drop the connection, and send `event::due` after the delay.
            wait,
            /// Drop the connection.
            disconnect,
        };
        kind step = kind::none;
        connection_events::event report = connection_events::event::none;
        lease_clock::duration delay{};
    };

    /// \param idle_timeout how long an unused connection is kept; duration::max(): until it is closed explicitly
    /// \param all the events of all connections of the backend; must outlive this object
    connection_plan(lease_clock::duration idle_timeout, connection_events& all) noexcept
        : idle_timeout_(idle_timeout), all_(&all)
    {
    }

    [[nodiscard]] action resume(lease_clock::time_point now, event input, demand current_demand);

    [[nodiscard]] phase current() const noexcept { return phase_; }
    [[nodiscard]] bool idle() const noexcept { return phase_ == phase::idle; }
    [[nodiscard]] bool open() const noexcept { return phase_ == phase::open; }
    [[nodiscard]] bool draining() const noexcept { return phase_ == phase::draining; }
    /// Returns whether requests may be sent.
    [[nodiscard]] bool takes_requests() const noexcept { return open() && !demoted_; }

    /// How long refusals count as failed attempts, after the first one. Within this time an orchestrator replaces a
    /// password or a certificate.
    static constexpr lease_clock::duration refusal_tolerance = std::chrono::minutes(1);
    /// Called when the server refuses the connection. Returns whether callers may try again: if the server has accepted
    /// the user before, and the first refusal since then is not older than `refusal_tolerance`. The next attempt to
    /// connect then waits for the delay of a failed attempt.
    [[nodiscard]] bool tolerates_refusal(lease_clock::time_point now) noexcept;
    /// Called when the server has accepted the user. Not implied by an open connection, because some servers check the
    /// user later. A backend that never calls this tolerates no refusal.
    void note_accepted() noexcept;

    /// Marks the connection as unsuitable, because its server should not be used any more. No further request is sent
    /// on it, and it is closed when no request is in flight.
    void demote() noexcept { demoted_ = true; }
    [[nodiscard]] bool demoted() const noexcept { return demoted_; }

    /// Starts a close with a deadline. Until `cancel_close`, each connection is closed as soon as it is not needed.
    /// Once the close is complete, a connection may be needed again: a body that outlasts the shutdown of its locker
    /// releases its lock.
    void close(lease_clock::time_point deadline) noexcept;
    void cancel_close() noexcept;
    [[nodiscard]] bool closes() const noexcept { return closes_; }
    /// Returns whether the deadline of the close has passed. Unsent operations then fail, and answers are not awaited
    /// any more.
    [[nodiscard]] bool out_of_time(lease_clock::time_point now) const noexcept { return close_deadline_ <= now; }
    /// Returns true when everything is closed, or when the deadline has passed and no completion is pending. The close
    /// is then complete and must be reported. The deadline is removed, so that the next close has its own.
    [[nodiscard]] bool finish_close(lease_clock::time_point now, client_state client) noexcept;

    /// Called when the owner no longer exists. The connection is kept only while operations are in flight.
    void retire() noexcept { retired_ = true; }
    [[nodiscard]] bool retired() const noexcept { return retired_; }

    /// Returns the delay until the owner's timer must fire again. Empty if no timer is needed, so that the event loop
    /// may run out of work. duration::max() if the timer may stay as it is.
    /// \param check_interval the delay while operations must be checked
    [[nodiscard]] std::optional<lease_clock::duration> next_timer_in(
        demand current_demand, client_state client, lease_clock::duration check_interval) const noexcept;

private:
    [[nodiscard]] action on_opened(lease_clock::time_point now);
    [[nodiscard]] action on_failed(demand current_demand);
    [[nodiscard]] action on_lost(event input, demand current_demand);
    [[nodiscard]] action wait_or_disconnect(demand current_demand, connection_events::event report);
    [[nodiscard]] action disconnect(connection_events::event report = connection_events::event::none) noexcept;
    [[nodiscard]] action on_timer(lease_clock::time_point now, demand current_demand);

    lease_clock::duration idle_timeout_;
    connection_events* all_;
    phase phase_ = phase::idle;
    lease_clock::time_point used_{};
    backoff delays_;
    /// When the server has first refused the user since it last accepted the user; max: not refused since then.
    lease_clock::time_point refused_since_ = lease_clock::time_point::max();
    /// Earliest time of the next attempt to connect.
    lease_clock::time_point refused_until_ = lease_clock::time_point::min();
    bool was_accepted_ = false;
    bool skips_delay_ = false;
    bool demoted_ = false;
    bool given_up_ = false;
    bool retired_ = false;
    bool closes_ = false;
    lease_clock::time_point close_deadline_ = lease_clock::time_point::max();
};

} // namespace colock::inline v0::remote
