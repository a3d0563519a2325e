// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// The transitions of a record. No other file changes a phase. docs/internals.md has a table of them.
#include "core/state/core.hpp"

#include <cstddef>
#include <utility>

namespace colock::inline v0::detail {

namespace {

/// Removes an acquiring record from its key's queue, or from the single attempts. Returns true if the queue has other
/// members.
bool leave_list(core& self, lock_record& record, wake_list& wakes)
{
    if (record.acquire_state().queue)
        return self.queues.leave(record, wakes);
    if (record.list_hook::is_linked())
        self.unqueued_acquires.erase(self.unqueued_acquires.iterator_to(record));
    return false;
}

/// Counts a lock that its caller receives, and reports it to the observer, if there is one.
void count_grant(core& self, lock_record& record)
{
    ++self.stats.grants;
    if (!self.options.observer)
        return;
    const auto now = lease_clock::now();
    record.release_state().time_held.start(now);
    self.events.add({.type = lock_event::kind::granted, .record = &record, .span = now - record.started});
}

/// Counts the end of a lock whose grant was counted, and reports a loss or the end of a leadership. `released` is
/// reported when the release is sent or answered.
void count_end(core& self, lock_record& record, lost_reason reason)
{
    if (reason == lost_reason::released) {
        ++self.stats.releases;
        if (self.options.observer && record.is_leadership)
            self.events.add({.type = lock_event::kind::resigned, .record = &record});
        return;
    }
    // A renewal in flight is counted as failed here, because its answer will come too late to be counted.
    const bool has_timed_out = reason == lost_reason::expired || reason == lost_reason::session;
    if (has_timed_out && record.lease_state().plan.renews() && record.in_flight == operation::extend &&
        record.lease_state().extension.is_renewal())
        ++self.stats.renewal_errors;
    ++self.stats.losses[static_cast<std::size_t>(reason)];
    if (self.options.observer) {
        self.events.add({.type = lock_event::kind::lost,
            .record = &record,
            .reason = reason,
            .span = record.release_state().time_held.span()});
    }
}

} // namespace

void core::grant(lock_record& record, std::uint64_t fence, deferred_actions& actions)
{
    auto& acquire = record.acquire_state();
    key_queue* const queue = acquire.queue;
    const bool has_waiters = leave_list(*this, record, actions.wakes);
    if (has_waiters) {
        // For the remaining waiters, the key is busy now.
        queue->answer = {.is_answered = true};
        if (record.mode() == lock_mode::exclusive)
            queue->holder = &record;
    }
    const bool has_waited = acquire.plan.has_waited();
    const auto loss_before_grant = acquire.loss_before_grant;
    record.granted = true;
    record.begin_lease_state();
    record.lease_state().fence = fence;
    record.lease().set_ttl_bound(record.lease_state().plan.on_granted(
        leases.lease_request_for(record, record.ttl()), record.lease().session_until()));
    record.move_to(phase::held);
    leases.add(record);
    if (!record.group_in_progress) {
        if (has_waited)
            count_end_of_wait(record.started);
        count_grant(*this, record);
    }
    record.notify(actions.wakes);
    // The adapter or a break may have reported the end of this grant before its answer.
    if (loss_before_grant)
        end_and_release(record, *loss_before_grant, actions);
    else if (record.is_to_be_queried)
        leases.query(record, actions);
}

void core::complete_grant(lock_record& record, bool renews, std::chrono::milliseconds max_hold, time_point now)
{
    record.group_in_progress = nullptr;
    record.lease().set_ttl_bound(
        record.lease_state().plan.on_group_complete(now, renews, max_hold, record.lease().ttl_bound()));
    leases.reschedule(record);
    count_grant(*this, record);
}

void core::deliver_answer(lock_record& record, create_outcome&& answer, deferred_actions& actions)
{
    auto& acquire = record.acquire_state();
    acquire.outcome = std::move(answer);
    acquire.outcome_ready = true;
    record.notify(actions.wakes);
}

void core::abandon(lock_record& record, deferred_actions& actions)
{
    if (record.current_phase() != phase::acquiring)
        return;
    leave_list(*this, record, actions.wakes);
    auto& acquire = record.acquire_state();
    if (acquire.plan.stop_waiting() && !record.group_in_progress)
        --stats.waiting;
    record.group_in_progress = nullptr;
    if (acquire.plan.stop_listening())
        actions.add_request(deferred_actions::action::cancel_wait, record);
    timers.schedule(record, time_point::max());
    if (record.in_flight == operation::none && !record.may_exist_in_backend)
        return record.move_to(phase::ended);
    record.begin_lease_state();
    record.release_state().is_in_background = true;
    record.move_to(phase::ending);
    releases.add(record);
    releases.send_release(record, actions);
}

bool core::end_and_release(lock_record& record, lost_reason reason, deferred_actions& actions)
{
    if (record.current_phase() != phase::held)
        return false;
    end_lease(record, reason, actions);
    releases.send_release(record, actions);
    return true;
}

void core::detach(lock_record& record, deferred_actions& actions)
{
    end_lease(record, lost_reason::released, actions);
    // The backend still keeps the lock for the process that adopts it, so the waiters must ask for its new expiry.
    finish(record, false, actions);
}

void core::finish(lock_record& record, bool proven, deferred_actions& actions)
{
    const auto& state = record.release_state();
    timers.schedule(record, time_point::max());
    if (state.is_in_background) {
        ++stats.settled;
        if (!proven)
            ++stats.unproven;
    }
    if (options.observer && (state.is_in_background || !state.release_reported)) {
        events.add({.type = state.is_in_background ? lock_event::kind::settled : lock_event::kind::released,
            .record = &record,
            .proven = proven,
            .span = state.time_held.span()});
    }
    record.move_to(phase::ended);
    record.notify(actions.wakes);
    if (record.granted && proven)
        queues.wake_after_release(record, actions.wakes);
    else if (record.granted)
        queues.wake_if_free(record, actions.wakes);
    releases.remove(record, actions);
}

/// Moves a record from `lease_table` to `pending_releases`, and reports its loss if its grant was reported. Sends no
/// release.
void core::end_lease(lock_record& record, lost_reason reason, deferred_actions& actions)
{
    auto& state = record.release_state();
    auto* const group = std::exchange(record.group_in_progress, nullptr);
    const bool is_released = reason == lost_reason::released;
    leases.remove(record);
    record.end_reason = reason;
    record.move_to(phase::ending);
    record.lease_state().plan.forget_renewal();
    if (options.observer)
        state.time_held.stop(lease_clock::now());
    releases.add(record);
    if (key_queue* const queue = queues.find(record); queue && queue->holder == &record)
        queue->holder = nullptr;
    if (!is_released)
        queues.wake_if_free(record, actions.wakes);
    state.is_in_background = group || !is_released;
    if (group)
        group->lease_ended(actions.wakes);
    else
        count_end(*this, record, reason);
    timers.schedule(record, record.lease_state().earliest_wait_deadline);
    record.notify(actions.wakes);
    for (const end_listener& each : record.lease_state().end_listeners)
        each.target->notify(actions.wakes);
}

} // namespace colock::inline v0::detail
