// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/policy/connection_events.hpp"
#include "remote/policy/connection_plan.hpp"
#include "remote/requests/client_base.hpp"
#include "remote/requests/event_reporter.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <string>
#include <utility>

namespace colock::remote {

/// The connection for commands of one client: made on demand, used, made again after a back-off when it is lost, and
/// closed when nothing needs it. `connection_plan` decides; a subclass connects to its server.
///
/// This is a loop over events, not a coroutine: in every phase a close, a refusal, a fork or the loss of the connection
/// may come next, so that each suspension of a coroutine would be followed by the switch that `on` has once.
///
/// Thread safety: none; belongs to the strand.
class connection_loop
{
public:
    using plan_type = connection_plan;
    using event = plan_type::event;

    connection_loop(const connection_loop&) = delete;
    connection_loop& operator=(const connection_loop&) = delete;

    /// Passes the event to the plan, and does what the plan decides.
    /// \param loss why the connection has ended, if it has
    void on(event what, const error_code& loss = {});
    [[nodiscard]] plan_type& plan() noexcept { return plan_; }
    [[nodiscard]] const plan_type& plan() const noexcept { return plan_; }
    /// A request is sent on the connection, which is therefore not idle.
    void note_use() noexcept { used_ = true; }
    /// Why there is no connection; null if there is one, or none was ever needed.
    [[nodiscard]] const failure_ptr& problem() const noexcept { return problem_; }
    /// Why no request can be sent any more on a connection that ends once none is in flight; otherwise null.
    [[nodiscard]] failure_ptr refusal() const noexcept { return plan_.demoted() && !plan_.idle() ? problem_ : nullptr; }

protected:
    /// \param owner and `told` live as long
    connection_loop(const asio::any_io_executor& strand, client_base& owner, event_reporter& told,
        lease_clock::duration idle_timeout);
    ~connection_loop() = default;

    /// Begins to connect. The attempt ends with a call of `opened`, `fail_to_connect` or `refuse`.
    virtual void connect() = 0;
    /// Drops the connection, and an attempt to make one.
    virtual void disconnect() = 0;
    /// The same before the next attempt to connect.
    virtual void disconnect_for_retry() { disconnect(); }
    /// The server's address, for observers.
    [[nodiscard]] virtual std::string address() const = 0;

    /// Requests may be sent.
    void opened();
    /// The attempt to connect has failed. After `errc::unavailable` it is repeated; any other failure is a refusal.
    void fail_to_connect(const failure_ptr& why);
    /// No attempt to connect will succeed: every operation that waits for a connection fails with `why`.
    void refuse(const failure_ptr& why);
    void set_problem(failure_ptr why) noexcept { problem_ = std::move(why); }
    /// Tries to connect at once instead of after the rest of the back-off.
    void end_back_off();

    client_base& owner_;
    event_reporter& reports_;

private:
    void back_off(lease_clock::duration delay);

    asio::steady_timer back_off_;
    connection_events news_;
    plan_type plan_;
    bool used_ = false;
    failure_ptr problem_;
};

} // namespace colock::remote
