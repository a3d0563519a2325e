// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// The transitions of a record. No other file changes a phase. docs/internals.md has a table of them.
#include "core/state/core.hpp"

#include <cstddef>
#include <utility>

namespace colock::inline v0::detail {

namespace {

/// Removes a record that acquires from the queue of its key, or from the single attempts. Returns true if the queue has
/// other members.
bool leave_list(core& self, record& subject, wake_list& wakes)
{
    if (subject.acquire().queue)
        return self.queues.leave(subject, wakes);
    if (subject.list_hook::is_linked())
        self.single_attempts.erase(self.single_attempts.iterator_to(subject));
    return false;
}

/// Counts a lock that its caller receives, and reports it to the observer, if there is one.
void count_grant(core& self, record& held)
{
    ++self.stats.grants;
    if (!self.options.observer)
        return;
    const auto now = lease_clock::now();
    held.release_state().held.start(now);
    self.events.add({.what = lock_event::kind::granted, .subject = &held, .span = now - held.started});
}

/// Counts and reports the end of a lock whose grant was counted.
void count_end(core& self, record& held, lost_reason reason)
{
    if (reason == lost_reason::released) {
        ++self.stats.releases;
        if (self.options.observer && held.is_leadership)
            self.events.add({.what = lock_event::kind::resigned, .subject = &held});
        return;
    }
    // An answer that arrives later is not counted any more.
    const bool has_ended = reason == lost_reason::expired || reason == lost_reason::session;
    if (has_ended && held.lease_state().plan.renews() && held.in_flight == operation::extend &&
        !held.lease_state().extension.result)
        ++self.stats.renewal_errors;
    ++self.stats.losses[static_cast<std::size_t>(reason)];
    if (self.options.observer) {
        self.events.add({.what = lock_event::kind::lost,
            .subject = &held,
            .reason = reason,
            .span = held.release_state().held.span()});
    }
}

} // namespace

void core::grant(record& subject, std::uint64_t fence, deferred_actions& actions)
{
    auto& acquire = subject.acquire();
    key_queue* const queue = acquire.queue;
    if (leave_list(*this, subject, actions.wakes)) {
        queue->answer = {.is_answered = true};
        if (subject.mode() == lock_mode::exclusive)
            queue->holder = &subject;
    }
    const bool has_waited = acquire.plan.has_waited();
    const auto loss_before_grant = acquire.loss_before_grant;
    subject.granted = true;
    subject.mark_acquired();
    subject.lease_state().fence = fence;
    subject.lease().set_ttl_bound(subject.lease_state().plan.on_granted(
        leases.request_of(subject, subject.ttl()), subject.lease().session_until()));
    subject.move_to(phase::held);
    leases.add(subject);
    if (!subject.group_in_progress) {
        if (has_waited)
            leases.end_wait(subject.started);
        count_grant(*this, subject);
    }
    subject.notify(actions.wakes);
    // The adapter or a break may have reported the end of this grant before its answer.
    if (loss_before_grant)
        begin_ending(subject, *loss_before_grant, actions);
    else if (subject.is_to_be_verified)
        leases.verify(subject, actions);
}

void core::hand_out(record& held, bool renews, std::chrono::milliseconds max_hold, time_point now)
{
    held.group_in_progress = nullptr;
    held.lease().set_ttl_bound(held.lease_state().plan.on_handed_out(now, renews, max_hold, held.lease().ttl_bound()));
    leases.reschedule(held);
    count_grant(*this, held);
}

void core::return_to_queue(record& subject, create_outcome&& answer, deferred_actions& actions)
{
    auto& acquire = subject.acquire();
    acquire.outcome = std::move(answer);
    acquire.outcome_ready = true;
    subject.notify(actions.wakes);
}

void core::abandon(record& subject, deferred_actions& actions)
{
    if (subject.current_phase() != phase::acquiring)
        return;
    leave_list(*this, subject, actions.wakes);
    auto& acquire = subject.acquire();
    if (acquire.plan.stop_waiting() && !subject.group_in_progress)
        --stats.waiting;
    subject.group_in_progress = nullptr;
    if (acquire.plan.stop_listening())
        actions.add_request(deferred_actions::action::cancel_wait, subject);
    timers.schedule(subject, time_point::max());
    if (subject.in_flight == operation::none && !subject.left_trace)
        return subject.move_to(phase::ended);
    subject.mark_acquired();
    subject.release_state().is_settling = true;
    subject.move_to(phase::ending);
    cleanup.add(subject);
    cleanup.start_release(subject, actions);
}

bool core::begin_ending(record& held, lost_reason reason, deferred_actions& actions)
{
    if (held.current_phase() != phase::held)
        return false;
    end_lease(held, reason, actions);
    cleanup.start_release(held, actions);
    return true;
}

void core::detach(record& held, deferred_actions& actions)
{
    end_lease(held, lost_reason::released, actions);
    // The waiters have to learn the new expiry from the backend, which still keeps the lock.
    finish(held, false, actions);
}

void core::finish(record& subject, bool proven, deferred_actions& actions)
{
    const auto& state = subject.release_state();
    timers.schedule(subject, time_point::max());
    if (state.is_settling) {
        ++stats.settled;
        if (!proven)
            ++stats.unproven;
    }
    if (options.observer && (state.is_settling || !state.reported_early)) {
        events.add({.what = state.is_settling ? lock_event::kind::settled : lock_event::kind::released,
            .subject = &subject,
            .proven = proven,
            .span = state.held.span()});
    }
    subject.move_to(phase::ended);
    subject.notify(actions.wakes);
    if (subject.granted && proven)
        queues.wake_after_release(subject, actions.wakes);
    else if (subject.granted)
        queues.wake_heads(subject, actions.wakes);
    cleanup.remove(subject, actions);
}

/// Moves a lock from the leases to the clean-up, which has not requested its release yet. Reports a loss, unless the
/// grant was not reported.
void core::end_lease(record& held, lost_reason reason, deferred_actions& actions)
{
    auto& state = held.release_state();
    auto* const group = std::exchange(held.group_in_progress, nullptr);
    const bool is_released = reason == lost_reason::released;
    leases.remove(held);
    held.end_reason = reason;
    held.move_to(phase::ending);
    held.lease_state().plan.forget_renewal();
    if (options.observer)
        state.held.stop(lease_clock::now());
    cleanup.add(held);
    if (key_queue* const queue = queues.find(held); queue && queue->holder == &held)
        queue->holder = nullptr;
    if (is_released)
        state.error = nullptr;
    else
        queues.wake_heads(held, actions.wakes);
    state.is_settling = group || !is_released;
    if (group)
        group->lease_ended(actions.wakes);
    else
        count_end(*this, held, reason);
    timers.schedule(held, held.lease_state().answer_by);
    held.notify(actions.wakes);
    for (const end_listener& each : held.lease_state().end_listeners)
        each.notified->notify(actions.wakes);
}

} // namespace colock::inline v0::detail
