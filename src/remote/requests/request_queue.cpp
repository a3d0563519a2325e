// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/request_queue.hpp"

#include "remote/requests/client_base.hpp"
#include "remote/requests/connection_loop.hpp"

#include <boost/asio/dispatch.hpp>

#include <utility>

namespace colock::inline v0::remote {

namespace {

/// Number of operations in a row that must be alone in flight before the next is started at once. With fewer, a caller
/// that alternates with others on a contended key would count as alone.
constexpr unsigned min_alone = 8;

} // namespace

void request_queue::submit(operation_ptr operation)
{
    if (operation->deadline == lease_clock::time_point())
        operation->deadline = deadlines_.deadline_for(lease_clock::now());
    if (!operations_.add(std::move(operation)) || is_flush_due_.load(std::memory_order_relaxed))
        return;
    if (!at_once_.exchange(false, std::memory_order_relaxed)) {
        flush_soon();
        return;
    }
    owner_.on_strand(
        *this,
        [](request_queue& self) {
            // This may run inside the caller's handler, so an operation that cannot be sent now is started in a
            // separate handler.
            if (self.owner_.requests().plan().open())
                self.flush();
            else
                self.flush_soon();
        },
        [](const auto& strand, auto handler) { asio::dispatch(strand, std::move(handler)); });
}

void request_queue::flush_soon()
{
    if (is_flush_due_.exchange(true, std::memory_order_relaxed))
        return;
    try {
        owner_.on_strand(*this, [](request_queue& self) { self.flush(); });
    } catch (...) {
        is_flush_due_ = false;
        throw;
    }
}

void request_queue::flush_if_was_full()
{
    if (std::exchange(is_full_, false))
        flush_soon();
}

void request_queue::notify_if_drained()
{
    if (owner_.requests().plan().draining() && !owner_.demand().has_in_flight)
        owner_.requests().handle(connection_loop::event::drained);
}

void request_queue::requeue(operation& operation)
{
    operations_.put_back(operation);
    notify_if_drained();
    flush_soon();
}

void request_queue::on_ended(operation& operation)
{
    operations_.remove(operation);
    flush_if_was_full();
    if (operations_.has_in_flight())
        return;
    // An operation may end inside its own `start`, which `flush` calls. The operation that follows must not be started
    // inside that call, so `flushing_` is checked.
    const bool expects_others = operations_.alone_in_a_row() < min_alone || !operations_.empty();
    at_once_.store(!flushing_ && !expects_others, std::memory_order_relaxed);
    notify_if_drained();
    if (const auto failure = owner_.requests().refusal())
        fail_waiting(failure);
    owner_.arm_timer();
}

void request_queue::flush()
{
    is_flush_due_.store(false, std::memory_order_relaxed);
    auto& requests = owner_.requests();
    if (!operations_.empty() && requests.plan().idle())
        requests.handle(connection_loop::event::needed);
    if (const auto failure = requests.refusal())
        fail_waiting(failure);
    const bool outer = std::exchange(flushing_, true);
    auto room = limits_.started_per_handler;
    for (; room > 0; --room) {
        const auto* const next = operations_.first();
        if (!next)
            break;
        is_full_ = operations_.in_flight_count() >= limits_.in_flight;
        if (is_full_ || !callbacks_.can_start(*next))
            break;
        if (const auto started = operations_.take())
            started->start();
    }
    callbacks_.send();
    flushing_ = outer;
    // Other handlers run before the queue continues.
    if (room == 0)
        flush_soon();
    owner_.arm_timer();
}

/// Ends some operations, and posts a handler if more are left. Does nothing if such a handler has been posted already.
void request_queue::end_some()
{
    if (ending_)
        return;
    // Set before any completion is called, because a completion may give up more operations.
    ending_ = true;
    const auto now = lease_clock::now();
    ending_ = operations_.end_some(now, owner_.requests().problem(), deadlines_.deadline_for(now));
    flush_if_was_full();
    if (!ending_)
        return;
    owner_.on_strand(*this, [](request_queue& self) {
        self.ending_ = false;
        self.end_some();
        self.owner_.finish_close();
        self.owner_.arm_timer();
    });
}

void request_queue::end_overdue(lease_clock::duration stall_time)
{
    operations_.postpone(stall_time);
    end_some();
    notify_if_drained();
}

void request_queue::fail_in_flight(const failure_ptr& failure)
{
    operations_.give_up_in_flight(failure);
    end_some();
    notify_if_drained();
}

void request_queue::fail_waiting(const failure_ptr& failure)
{
    operations_.give_up_waiting(failure);
    end_some();
    // `event::refused` drops the connection, so the operations in flight are awaited.
    if (!operations_.has_in_flight())
        owner_.requests().handle(connection_loop::event::refused);
    owner_.arm_timer();
}

void request_queue::fail_all()
{
    const auto& problem = owner_.requests().problem();
    const auto cause = problem ? problem->cause : error_code();
    operations_.give_up_waiting(
        make_failure(errc::unavailable, "the adapter was closed before this could be sent", cause));
    operations_.give_up_in_flight(
        make_failure(errc::outcome_unknown, "the adapter was closed before this was answered"));
    end_some();
}

} // namespace colock::inline v0::remote
