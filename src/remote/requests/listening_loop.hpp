// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/policy/listening_plan.hpp"
#include "remote/requests/client_base.hpp"
#include "remote/requests/connection_loop.hpp"
#include "remote/requests/wait_sources.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <optional>
#include <string>
#include <vector>

namespace colock::inline v0::remote {

/// Maintains the connection that receives the release events for waiters, or polls if events cannot be received. The
/// connection is established while a caller waits, and established again after a back-off when it is lost.
/// `listening_plan` decides; a derived class connects and subscribes to events.
///
/// Thread safety: none; belongs to the strand.
class listening_loop
{
public:
    using plan_type = listening_plan;
    using event = plan_type::event;

    listening_loop(const listening_loop&) = delete;
    listening_loop& operator=(const listening_loop&) = delete;

    /// Passes the event to the plan, and executes the action of the plan.
    void handle(event input);
    /// Called when requests can be sent on a new connection, perhaps to another server.
    virtual void follow_requests() = 0;
    /// Returns whether there is a connection.
    [[nodiscard]] virtual bool connected() const noexcept = 0;
    /// Returns the time after which a wait ends without an event; empty: never.
    [[nodiscard]] virtual std::optional<lease_clock::duration> longest_wait() const = 0;
    /// Removes unused sources and ends waits that are due, up to `max_per_handler` of each in one handler. Then the
    /// plan receives its timer event.
    void sweep();

protected:
    /// \param owner must outlive this object, like the other references
    /// \param linger how long an unused source is kept
    listening_loop(const asio::any_io_executor& strand, client_base& owner, connection_loop& requests,
        wait_sources& sources, lease_clock::duration linger);
    ~listening_loop() = default;

    virtual void connect() = 0;
    /// Closes the connection; `event::closed` follows.
    virtual void disconnect() = 0;
    /// Subscribes to the events of every source that is not subscribed yet.
    virtual void listen() = 0;
    /// Like `listen`, although the events come from another server than the one that requests go to.
    virtual void listen_elsewhere() { listen(); }
    /// Called after a decision of the plan, which may have started or stopped polling.
    virtual void note_decision() = 0;
    /// Cancels the subscriptions to these sources, whose events are not needed any more.
    virtual void stop_listening(const std::vector<std::string>& names) = 0;

    [[nodiscard]] plan_type& plan() noexcept { return plan_; }
    [[nodiscard]] const plan_type& plan() const noexcept { return plan_; }

    const asio::any_io_executor strand_;
    client_base& owner_;
    wait_sources& sources_;

private:
    void back_off(lease_clock::duration delay);
    // Each of these functions does a part of its work, and returns whether more is left.
    [[nodiscard]] bool forget_unused();
    [[nodiscard]] bool end_due_waits();

    connection_loop& requests_;
    const lease_clock::duration linger_;
    asio::steady_timer back_off_;
    plan_type plan_;
    /// The handler for the next part of a sweep has been posted.
    bool is_sweeping_ = false;
};

} // namespace colock::inline v0::remote
