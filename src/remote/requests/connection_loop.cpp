// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/connection_loop.hpp"

#include <utility>

namespace colock::inline v0::remote {

connection_loop::connection_loop(const asio::any_io_executor& strand, client_base& owner, event_reporter& reporter,
    lease_clock::duration idle_timeout, std::shared_ptr<connection_events> events)
    : owner_(owner), reports_(reporter), back_off_(strand), events_(std::move(events)), plan_(idle_timeout, *events_)
{
}

void connection_loop::handle(event input, const error_code& loss)
{
    using kind = plan_type::action::kind;
    auto demand = owner_.demand();
    demand.used = input == event::timer && std::exchange(used_, false);
    const auto action = plan_.resume(lease_clock::now(), input, demand);
    if (action.report != connection_events::event::none)
        reports_.report(action.report, loss, problem_, address());
    switch (action.step) {
    case kind::none:
        return;
    case kind::connect:
        connect();
        owner_.arm_timer();
        return;
    case kind::wait:
        disconnect_for_retry();
        back_off(action.delay);
        owner_.arm_timer();
        return;
    case kind::disconnect:
        back_off_.cancel();
        disconnect();
        owner_.arm_timer();
        owner_.finish_close();
        return;
    }
}

void connection_loop::opened()
{
    problem_ = nullptr;
    handle(event::opened);
    owner_.on_connected();
}

void connection_loop::fail_to_connect(const failure_ptr& failure)
{
    if (failure->code != errc::unavailable) {
        refuse(failure);
        return;
    }
    problem_ = failure;
    handle(event::failed);
}

void connection_loop::refuse(const failure_ptr& failure)
{
    problem_ = tolerate(failure);
    reports_.warn(address() + " cannot be used: " + failure->detail);
    owner_.queue().fail_waiting(problem_);
}

failure_ptr connection_loop::tolerate(const failure_ptr& failure)
{
    return plan_.tolerates_refusal(lease_clock::now())
               ? make_failure(errc::unavailable, failure->detail, failure->cause)
               : failure;
}

void connection_loop::back_off(lease_clock::duration delay)
{
    back_off_.expires_after(delay);
    back_off_.async_wait([self = owner_.keep(*this)](const error_code& error) {
        if (!error)
            self->handle(event::due);
    });
}

void connection_loop::end_back_off()
{
    back_off_.cancel();
    handle(event::due);
}

} // namespace colock::inline v0::remote
