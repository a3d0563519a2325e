// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/policy/connection_events.hpp"
#include "remote/policy/connection_plan.hpp"
#include "remote/requests/client_base.hpp"
#include "remote/requests/event_reporter.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <memory>
#include <string>
#include <utility>

namespace colock::inline v0::remote {

/// The connection for commands of one client. It is established on demand, established again after a back-off when it
/// is lost, and closed when it is not needed. `connection_plan` decides; a derived class connects to its server.
///
/// The decisions are a state machine, not a coroutine, because a close, a refusal or the loss of the connection may
/// come in any phase. The steps of one connection may be a coroutine of the derived class. `disconnect` destroys it, so
/// it does not have to check for these events.
///
/// Thread safety: none; belongs to the strand.
class connection_loop
{
public:
    using plan_type = connection_plan;
    using event = plan_type::event;

    connection_loop(const connection_loop&) = delete;
    connection_loop& operator=(const connection_loop&) = delete;

    /// Passes the event to the plan, and executes the action of the plan.
    /// \param loss why the connection has ended, if it has
    void handle(event input, const error_code& loss = {});
    [[nodiscard]] plan_type& plan() noexcept { return plan_; }
    [[nodiscard]] const plan_type& plan() const noexcept { return plan_; }
    /// Must be called when a request is sent on the connection, which is therefore not idle.
    void note_use() noexcept { used_ = true; }
    /// Called when the deadline of a close has passed: answers are not awaited any more.
    virtual void give_up() = 0;
    /// Returns the last failure of a connection, or why its server refuses requests. Null after a successful connect.
    [[nodiscard]] const failure_ptr& problem() const noexcept { return problem_; }
    /// Returns why the server of an open connection refuses further requests. Null if it accepts them.
    [[nodiscard]] failure_ptr refusal() const noexcept { return plan_.demoted() && plan_.open() ? problem_ : nullptr; }

protected:
    /// \param owner must outlive this object
    /// \param reporter must outlive this object
    /// \param events the events of all connections of the backend
    connection_loop(const asio::any_io_executor& strand, client_base& owner, event_reporter& reporter,
        lease_clock::duration idle_timeout,
        std::shared_ptr<connection_events> events = std::make_shared<connection_events>());
    ~connection_loop() = default;

    /// Begins to connect. The attempt ends with a call of `opened`, `fail_to_connect` or `refuse`.
    virtual void connect() = 0;
    /// Drops the connection, or the current attempt to connect.
    virtual void disconnect() = 0;
    /// Drops the connection before the next attempt to connect.
    virtual void disconnect_for_retry() { disconnect(); }
    /// Returns the server's address for observers.
    [[nodiscard]] virtual std::string address() const = 0;

    /// Must be called when the connection is ready for requests.
    void opened();
    /// Must be called when the attempt to connect has failed. The attempt is repeated after `errc::unavailable`; any
    /// other failure is a refusal.
    void fail_to_connect(const failure_ptr& failure);
    /// Must be called when the server refuses the connection. Every operation that waits for a connection fails with
    /// `failure`. If the server may accept the next attempt, because its secrets are being replaced, the operations
    /// fail with `errc::unavailable` and the text of `failure`.
    void refuse(const failure_ptr& failure);
    /// Returns the failure of operations after a refusal: `failure`, or `errc::unavailable` if the refusal is
    /// tolerated.
    [[nodiscard]] failure_ptr tolerate(const failure_ptr& failure);
    void set_problem(failure_ptr failure) noexcept { problem_ = std::move(failure); }
    /// Tries to connect at once instead of after the rest of the back-off.
    void end_back_off();

    client_base& owner_;
    event_reporter& reports_;

private:
    void back_off(lease_clock::duration delay);

    asio::steady_timer back_off_;
    const std::shared_ptr<connection_events> events_;
    plan_type plan_;
    bool used_ = false;
    failure_ptr problem_;
};

} // namespace colock::inline v0::remote
