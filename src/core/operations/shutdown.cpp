// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/operations.hpp"
#include "core/operations/request_answer.hpp"
#include "core/operations/wait_until.hpp"
#include "core/state/core.hpp"

#include <algorithm>
#include <new>

namespace colock::inline v0::detail::operations {

namespace {

/// \param close_timeout maximum time for which the backend continues with pending requests
void leave_backend(core& self, lease_clock::duration close_timeout, completion<close_outcome> done)
{
    bool is_last = false;
    {
        const std::lock_guard guard(self.mutex);
        is_last = !std::exchange(self.has_left_backend, true) && self.backend->remove_user() && !self.dead;
    }
    if (!is_last)
        return done(close_outcome{});
    self.backend->start_close(close_timeout, std::move(done));
    // Another thread may have made another locker before the close began.
    if (self.backend->has_users())
        self.backend->cancel_close();
}

asio::awaitable<void> close_backend(
    std::shared_ptr<core> self, lease_clock::duration close_timeout, lease_clock::time_point until)
{
    auto state = std::make_shared<answer_state<close_outcome>>();
    leave_backend(*self, close_timeout, [state, weak = self->weak_from_this()](close_outcome outcome) {
        const auto alive = weak.lock();
        if (!alive)
            return;
        alive->update([&](deferred_actions& actions) {
            state->outcome = outcome;
            state->notify(actions.wakes);
        });
    });
    co_await wait_until(*self, *state, until, [&] { return state->outcome || self->dead; });
}

/// Adds to `keys` the keys of acquires that may have left a grant or a place in the backend's queue: a request is
/// unanswered, an unanswered request may still be executed, or a grant has not been processed.
void report_undecided(core& self, std::vector<std::string>& keys)
{
    const auto add = [&](const lock_record& record) {
        const auto& acquire = record.acquire_state();
        const bool is_granted = acquire.outcome_ready && acquire.outcome.status == create_status::granted;
        const bool keeps_a_place = record.may_exist_in_backend && self.can.fifo && !self.can.immediate;
        if (record.in_flight != operation::none || record.in_doubt() || is_granted || keeps_a_place)
            keys.push_back(record.key());
    };
    self.queues.for_each(add);
    std::for_each(self.unqueued_acquires.begin(), self.unqueued_acquires.end(), add);
}

/// Minimum time that a shutdown waits for calls of other threads. Such calls are short, but their threads may be
/// paused.
constexpr auto call_grace_time = std::chrono::milliseconds(100);

/// Number of calls of other threads that are inside the backend, for acquires and releases that the backend answers at
/// once. The mutex must be held.
unsigned calls_in_flight(const core& self) noexcept
{
    return self.immediate_creates + self.releases.calls_in_flight();
}

shutdown_report end_shutdown(core& self)
{
    return self.update([&](deferred_actions& actions) {
        shutdown_report report;
        for (lock_record& record : self.leases.all()) {
            report.still_running.push_back(record.key());
            record.lease_state().plan.stop_renewals();
            self.leases.reschedule(record);
        }
        report.unsettled = self.releases.give_up_and_list_keys(actions);
        report_undecided(self, report.unsettled);
        report.unproven = self.stats.unproven;
        return report;
    });
}

} // namespace

void on_last_handle_destroyed(core& self) noexcept
{
    try {
        self.shutdown.end_waiters();
        leave_backend(self, self.options.operation_timeout, [](close_outcome) {});
    } catch (const std::bad_alloc&) {
        // The destructor of the last handle must not throw. The connections stay open until the adapter is destroyed.
    }
}

asio::awaitable<shutdown_report> shutdown(std::shared_ptr<core> self, std::chrono::milliseconds deadline)
{
    const auto now = lease_clock::now();
    const auto until = saturating_add(now, deadline);
    const auto calls_end_by = now + call_grace_time;
    self->shutdown.end_waiters_and_leases();
    const timer_guard on_exit{*self, self->shutdown.drained()};
    // Number of calls in flight when the shutdown stopped waiting. Later calls are not counted, because the closed
    // locker refuses them.
    unsigned unfinished_calls = 0;
    for (;;) {
        std::uint32_t seen = 0;
        {
            const std::lock_guard guard(self->mutex);
            // The notification of the waiters is fast, so it is completed even after the deadline.
            const bool is_notifying = self->shutdown.is_notifying();
            const bool has_calls_in_flight = calls_in_flight(*self) != 0;
            if (self->leases.all().empty() && self->releases.empty() && self->acquire_count == 0 &&
                !has_calls_in_flight && !is_notifying)
                break;
            const auto ends_at = has_calls_in_flight ? std::max(until, calls_end_by) : until;
            const bool is_in_time = lease_clock::now() < ends_at;
            if (is_in_time && !self->dead) {
                self->timers.schedule_wait(self->shutdown.drained(), std::min(self->shutdown.drained().due, ends_at));
            } else if (!is_notifying && !(is_in_time && has_calls_in_flight)) {
                unfinished_calls = calls_in_flight(*self);
                break;
            }
            seen = self->shutdown.drained().version;
        }
        co_await self->async_wait(self->shutdown.drained(), seen);
    }
    auto report = end_shutdown(*self);
    report.unfinished_calls = unfinished_calls;
    // The backend may have claims of its own to release. It gets no time for them if claims of this locker are already
    // unsettled.
    const auto close_timeout =
        report.unsettled.empty() ? self->options.operation_timeout : std::chrono::milliseconds(0);
    co_await close_backend(self, close_timeout, until);
    report.unproven += self->backend->unproven();
    co_return report;
}

} // namespace colock::inline v0::detail::operations
