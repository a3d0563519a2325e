// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/lease_table.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace colock::inline v0::detail {

using std::chrono::milliseconds;

namespace {

/// The delay of a request that there is no memory to add. If its exception were rethrown, the requests of other locks
/// that were added before it would be lost.
constexpr milliseconds delay_without_memory{10};

} // namespace

lease_request lease_table::request_of(const record& claim, milliseconds ttl) const noexcept
{
    // A request that may arrive late counts as if it had been the last one.
    const auto counted = std::min(ttl, claim.late_ttl());
    return {claim.operation_start(), counted, shard_.backend->max_clock_lead(counted)};
}

void lease_table::hold(record& wanted, std::uint64_t fence)
{
    wanted.fence = fence;
    wanted.granted = true;
    wanted.lease().set_ttl_bound(
        wanted.plan.on_granted(request_of(wanted, wanted.ttl()), wanted.lease().session_until()));
    wanted.mark_acquired();
    wanted.move_to(phase::held);
    held_.push_back(wanted);
    if (wanted.lease().session())
        watch_session(wanted);

    if (!wanted.group_in_progress) {
        ++shard_.stats.grants;
        if (wanted.acquire.has_waited())
            end_wait(wanted.started);
    }
    if (wanted.plan.renews() || is_watched(wanted) || wanted.due != time_point::max() || wanted.plan.is_bounded())
        reschedule(wanted);
}

void lease_table::end_wait(time_point started)
{
    --shard_.stats.waiting;
    const auto waited = lease_clock::now() - started;
    shard_.stats.waited_total += waited;
    shard_.stats.waited_longest = std::max(shard_.stats.waited_longest, std::chrono::nanoseconds(waited));
}

bool lease_table::is_watched(const record& held) const noexcept
{
    return shard_.watches_all || (shard_.can.extends_groups && !held.owner().group.empty());
}

void lease_table::grant(record& wanted, std::uint64_t fence, deferred_actions& actions)
{
    key_queue* queue = wanted.place.queue;
    if (shard_.queues.leave(wanted, actions.wakes)) {
        queue->answer = {.is_answered = true};
        if (wanted.mode() == lock_mode::exclusive)
            queue->holder = &wanted;
    }
    hold(wanted, fence);
    wanted.notify(actions.wakes);
    if (shard_.options.observer && !wanted.group_in_progress)
        report_grant(wanted, lease_clock::now());
    apply_early_reports(wanted, actions);
}

void lease_table::report_grant(record& held, time_point now)
{
    held.release_state().held.start(now);
    shard_.events.add({.what = lock_event::kind::granted, .subject = &held, .span = now - held.started});
}

void lease_table::note_hold_time(record& held) const noexcept
{
    if (shard_.options.observer)
        held.release_state().held.stop(lease_clock::now());
}

void lease_table::apply_early_reports(record& held, deferred_actions& actions)
{
    if (held.loss_before_grant)
        return end_lease(held, *held.loss_before_grant, actions);
    if (held.is_to_be_verified)
        verify(held, actions);
}

void lease_table::verify(record& held, deferred_actions& actions)
{
    held.is_to_be_verified = true;
    if (held.in_flight != operation::none)
        return;
    try {
        actions.add_request(deferred_actions::action::verify, held);
    } catch (const std::bad_alloc&) {
        shard_.timers.schedule(held, saturating_add(lease_clock::now(), delay_without_memory));
        return;
    }
    held.is_to_be_verified = false;
    held.in_flight = operation::query;
    held.set_operation_start(lease_clock::now());
}

void lease_table::hand_out(record& held, bool renews, milliseconds max_hold, time_point now)
{
    held.group_in_progress = nullptr;
    held.lease().set_ttl_bound(held.plan.on_handed_out(now, renews, max_hold, held.lease().ttl_bound()));
    ++shard_.stats.grants;
    reschedule(held);
    if (shard_.options.observer)
        report_grant(held, now);
}

void lease_table::reschedule(record& held)
{
    const auto due = held.plan.due(held.lease().valid_until(), shard_.margins, is_watched(held));
    shard_.timers.schedule(held, std::min(due, held.answer_by));
}

/// Returns false if the lease has ended.
bool lease_table::follow_plan(record& held, time_point now, deferred_actions& actions)
{
    for (;;) {
        const auto expiry = held.lease().has_ended(now) ? time_point::min() : held.lease().valid_until();
        const auto next = held.plan.next(now, expiry, shard_.margins, is_watched(held));
        switch (next.what) {
        case lease_plan::action::lose:
            end_lease(held, end_reason_of(held, now), actions);
            return false;
        case lease_plan::action::stop_body:
            stop_body(held, lost_reason::expired, actions);
            break;
        case lease_plan::action::renew:
            start_renewal(held, now, actions);
            break;
        case lease_plan::action::wait:
            return true;
        }
    }
}

void lease_table::stop_body(record& held, lost_reason why, deferred_actions& actions)
{
    held.plan.stop_body(why);
    held.notify(actions.wakes);
}

bool lease_table::shut_down_next(deferred_actions& actions)
{
    if (held_.empty() || held_.front().shutdown_notified)
        return false;
    record& next = held_.front();
    next.shutdown_notified = true;
    if (!next.plan.body_runs()) {
        end_lease(next, lost_reason::shutting_down, actions);
        return true;
    }
    stop_body(next, lost_reason::shutting_down, actions);
    // The lock stays until its body ends. Locks that have not been notified of the shutdown are at the front.
    held_.splice(held_.end(), held_, held_.iterator_to(next));
    return true;
}

void lease_table::start_renewal(record& held, time_point now, deferred_actions& actions)
{
    held.plan.forget_renewal();
    // The operation in flight schedules the next renewal when it ends.
    if (held.in_flight != operation::none)
        return;
    const auto ttl = held.plan.renewal_ttl(now, held.ttl(), shard_.limits.min_ttl);
    if (!ttl || is_too_short(*ttl, shard_.backend->max_clock_lead(*ttl)))
        return;
    try {
        actions.add_request(deferred_actions::action::renew, held);
    } catch (const std::bad_alloc&) {
        held.plan.schedule_renewal(saturating_add(now, delay_without_memory));
        reschedule(held);
        return;
    }
    held.in_flight = operation::extend;
    held.extension().ttl = *ttl;
    held.extension().result.reset();
    held.set_operation_start(now);
    cleanup_queue::note_request(held, *ttl);
}

void lease_table::end_lease(record& held, lost_reason reason, deferred_actions& actions)
{
    held_.erase(held_.iterator_to(held));
    held.end_reason = reason;
    held.move_to(phase::ending);
    held.plan.forget_renewal();
    note_hold_time(held);
    cleanup_queue::note_request(held, held.ttl());
    cleanup_.enter(held);
    if (key_queue* queue = shard_.queues.find(held); queue && queue->holder == &held)
        queue->holder = nullptr;
    if (reason != lost_reason::released)
        shard_.queues.wake_heads(held, actions.wakes);
    else
        held.release_state().error = nullptr;
    if (auto* const group = std::exchange(held.group_in_progress, nullptr)) {
        // The grant was not reported to anybody, so its end is not reported either.
        held.release_state().is_settling = true;
        group->lease_ended(actions.wakes);
    } else if (reason != lost_reason::released) {
        held.release_state().is_settling = true;
        // An answer that arrives later is not counted any more.
        const bool has_ended = reason == lost_reason::expired || reason == lost_reason::session;
        if (has_ended && held.plan.renews() && held.in_flight == operation::extend && !held.extension().result)
            ++shard_.stats.renewal_errors;
        ++shard_.stats.losses[static_cast<std::size_t>(reason)];
        if (shard_.options.observer)
            shard_.events.add({.what = lock_event::kind::lost,
                .subject = &held,
                .reason = reason,
                .span = held.release_state().held.span()});
    } else {
        count_release(held);
    }
    shard_.timers.schedule(held, held.answer_by);
    notify_end(held, actions.wakes);
    cleanup_.start_release(held, actions);
}

void lease_table::count_release(record& held)
{
    ++shard_.stats.releases;
    if (shard_.options.observer && held.is_leadership)
        shard_.events.add({.what = lock_event::kind::resigned, .subject = &held});
}

void lease_table::notify_end(record& held, wake_list& wakes)
{
    held.notify(wakes);
    for (const end_listener& each : held.end_listeners)
        each.notified->notify(wakes);
}

void lease_table::detach(record& held, deferred_actions& actions)
{
    remove(held);
    held.end_reason = lost_reason::released;
    held.move_to(phase::ended);
    held.plan.forget_renewal();
    shard_.timers.schedule(held, time_point::max());
    if (key_queue* queue = shard_.queues.find(held); queue && queue->holder == &held)
        queue->holder = nullptr;
    // The waiters have to learn the new expiry from the backend.
    shard_.queues.wake_heads(held, actions.wakes);
    count_release(held);
    note_hold_time(held);
    if (shard_.options.observer)
        shard_.events.add(
            {.what = lock_event::kind::released, .subject = &held, .span = held.release_state().held.span()});
    notify_end(held, actions.wakes);
    // A shutdown waits for bodies, and a body may have made this call.
    cleanup_.drained().notify(actions.wakes);
}

void lease_table::watch_session(record& held)
{
    const auto& session = held.lease().session();
    if (session_.lock() == session)
        return;
    session_ = session;
    session->watch(owner_.lock());
    // The session may have ended just before.
    if (session->valid_until() == time_point::min())
        shard_.timers.schedule(held, lease_clock::now());
}

lost_reason lease_table::end_reason_of(const record& held, time_point now) noexcept
{
    const auto& session = held.lease().session();
    if (session && session->has_ended(now))
        return lost_reason::session;
    return held.lease().has_ended(now) ? lost_reason::expired : lost_reason::taken;
}

std::optional<lost_reason> lease_table::report_loss(record& held, deferred_actions& actions)
{
    if (held.current_phase() != phase::held)
        return held.end_reason;
    // The timer may be late if the body kept its thread busy.
    if (held.plan.body_must_stop())
        end_lease(held, held.plan.stop_reason(), actions);
    else if (const auto now = lease_clock::now(); held.lease().has_ended(now))
        end_lease(held, end_reason_of(held, now), actions);
    return held.end_reason;
}

void lease_table::apply_requested_ttl(record& held, milliseconds ttl, deferred_actions& actions)
{
    cleanup_queue::note_request(held, ttl);
    if (const auto sooner = held.plan.on_shortened(request_of(held, ttl), held.lease().ttl_bound())) {
        held.lease().set_ttl_bound(*sooner);
        shard_.queues.wake_for_earlier_expiry(held, saturating_add(held.operation_start(), ttl), actions.wakes);
    }
}

void lease_table::on_extended(record& subject, extend_outcome&& outcome, deferred_actions& actions)
{
    subject.end_operation_in_flight();
    const auto result = std::move(subject.extension().result);
    // A renewal of an incomplete group may be answered after the completion of the group.
    const bool is_renewal = !result && !subject.group_in_progress && subject.plan.renews();
    const bool tells = shard_.options.observer && (result ? !subject.group_in_progress : is_renewal);
    if (outcome.status == extend_status::failed && outcome.error->code == errc::outcome_unknown)
        subject.lower_late_ttl(subject.extension().ttl);
    if (subject.current_phase() == phase::ended)
        return;
    if (subject.current_phase() == phase::ending) {
        cleanup_.start_release(subject, actions);
    } else if (outcome.status == extend_status::extended && !subject.lease().has_ended(lease_clock::now())) {
        subject.release_state().error = nullptr;
        if (result)
            subject.set_ttl(subject.extension().ttl);
        else if (is_renewal)
            ++shard_.stats.renewals;
        subject.lease().set_ttl_bound(subject.plan.on_extended(
            request_of(subject, subject.extension().ttl), std::min(subject.ttl(), subject.late_ttl())));
        if (!result && tells) {
            shard_.events.add({.what = lock_event::kind::renewed,
                .subject = &subject,
                .span = subject.lease().valid_until() - lease_clock::now()});
        }
    } else if (outcome.status != extend_status::failed) {
        // An answer that came after the deadline cannot restore a lock that was not held for a while.
        end_lease(subject, end_reason_of(subject, lease_clock::now()), actions);
    } else if (subject.plan.renews()) {
        if (is_renewal)
            ++shard_.stats.renewal_errors;
        subject.plan.on_failed(lease_clock::now());
        subject.release_state().error = outcome.error;
        if (tells)
            shard_.events.add({.what = lock_event::kind::at_risk, .subject = &subject, .why = outcome.error->code});
    }
    if (result)
        result->emplace(std::move(outcome));
    if (subject.group_in_progress)
        subject.group_in_progress->notify(actions.wakes);
    if (subject.current_phase() == phase::held) {
        reschedule(subject);
        if (subject.is_to_be_verified)
            verify(subject, actions);
    }
    subject.notify(actions.wakes);
}

void lease_table::on_contact_lost(time_point now)
{
    for (record& held : held_) {
        if (shard_.options.observer && !held.group_in_progress)
            shard_.events.add({.what = lock_event::kind::at_risk, .subject = &held, .why = errc::unavailable});
        // The renewal also shows whether the lease still exists, so it is due at once.
        if (held.plan.renews() && held.in_flight == operation::none) {
            held.plan.schedule_renewal(now);
            reschedule(held);
        }
    }
}

/// The locks become due now, so the timer ends them in batches.
void lease_table::on_session_ended(const session_lease& session)
{
    const auto now = lease_clock::now();
    for (record& held : held_) {
        if (held.lease().session().get() == &session)
            shard_.timers.schedule(held, now);
    }
}

} // namespace colock::inline v0::detail
