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

namespace colock::remote {

/// The connection that brings events of released locks to waiters, or polling in its place: made while somebody waits,
/// and made again after a back-off. `listening_plan` decides; a subclass connects and asks its server for events.
///
/// Thread safety: none; belongs to the strand.
class listening_loop
{
public:
    using plan_type = listening_plan;
    using event = plan_type::event;

    listening_loop(const listening_loop&) = delete;
    listening_loop& operator=(const listening_loop&) = delete;

    /// Passes the event to the plan, and does what the plan decides.
    void on(event what);
    /// Forgets unused sources and ends waits that are due, up to `most_per_turn` of each in one handler. Then the plan
    /// has its turn.
    void sweep();

protected:
    /// \param owner and the other references live as long
    /// \param linger how long a source is kept that nobody uses
    listening_loop(const asio::any_io_executor& strand, client_base& owner, connection_loop& requests,
        wait_sources& sources, lease_clock::duration linger);
    ~listening_loop() = default;

    virtual void connect() = 0;
    /// Closes the connection; `event::ended` follows.
    virtual void disconnect() = 0;
    /// Asks for the events of every source that is not asked for yet.
    virtual void listen() = 0;
    /// The same, though the events come from another server than the one that requests go to.
    virtual void listen_elsewhere() { listen(); }
    /// The plan has decided: it may have begun or ceased to poll.
    virtual void note_decision() = 0;
    /// After how long a wait ends without an event; none: never.
    [[nodiscard]] virtual std::optional<lease_clock::duration> max_wait() const = 0;
    /// Events of these sources are not needed any more.
    virtual void stop_listening(const std::vector<std::string>& names) = 0;

    [[nodiscard]] plan_type& plan() noexcept { return plan_; }
    [[nodiscard]] const plan_type& plan() const noexcept { return plan_; }

    const asio::any_io_executor strand_;
    client_base& owner_;
    wait_sources& sources_;

private:
    void back_off(lease_clock::duration delay);
    // These do some of it, and return whether there is more.
    [[nodiscard]] bool forget_unused();
    [[nodiscard]] bool end_due_waits();

    connection_loop& requests_;
    const lease_clock::duration linger_;
    asio::steady_timer back_off_;
    plan_type plan_;
    /// The next part of a sweep is posted already.
    bool is_sweeping_ = false;
};

} // namespace colock::remote
