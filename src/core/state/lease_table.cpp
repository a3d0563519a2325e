// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/lease_table.hpp"

#include "core/state/core.hpp"
#include "util/simulation_marks.hpp"

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
    return {claim.operation_start(), counted, core_.backend->max_clock_lead(counted)};
}

void lease_table::add(record& held)
{
    held_.push_back(held);
    if (held.lease().session())
        watch_session(held);
    if (held.lease_state().plan.renews() || is_watched(held) || held.due != time_point::max() ||
        held.lease_state().plan.is_bounded())
        reschedule(held);
}

void lease_table::end_wait(time_point started)
{
    --core_.stats.waiting;
    const auto waited = lease_clock::now() - started;
    core_.stats.waited_total += waited;
    core_.stats.waited_longest = std::max(core_.stats.waited_longest, std::chrono::nanoseconds(waited));
}

bool lease_table::is_watched(const record& held) const noexcept
{
    return core_.watches_all || (core_.can.extends_groups && !held.owner().group.empty());
}

void lease_table::verify(record& held, deferred_actions& actions)
{
    held.is_to_be_verified = true;
    if (held.in_flight != operation::none)
        return;
    try {
        actions.add_request(deferred_actions::action::verify, held);
    } catch (const std::bad_alloc&) {
        core_.timers.schedule(held, saturating_add(lease_clock::now(), delay_without_memory));
        return;
    }
    held.is_to_be_verified = false;
    held.in_flight = operation::query;
    held.set_operation_start(lease_clock::now());
}

void lease_table::reschedule(record& held)
{
    const auto due = held.lease_state().plan.due(held.lease().valid_until(), core_.margins, is_watched(held));
    core_.timers.schedule(held, std::min(due, held.lease_state().answer_by));
}

/// Returns false if the lease has ended.
bool lease_table::follow_plan(record& held, time_point now, deferred_actions& actions)
{
    for (;;) {
        const auto expiry = held.lease().has_ended(now) ? time_point::min() : held.lease().valid_until();
        const auto next = held.lease_state().plan.next(now, expiry, core_.margins, is_watched(held));
        switch (next.what) {
        case lease_plan::action::lose:
            core_.begin_ending(held, end_reason_of(held, now), actions);
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
    held.lease_state().plan.stop_body(why);
    held.notify(actions.wakes);
}

bool lease_table::shut_down_next(deferred_actions& actions)
{
    if (held_.empty() || held_.front().lease_state().shutdown_notified)
        return false;
    record& next = held_.front();
    next.lease_state().shutdown_notified = true;
    if (!next.lease_state().plan.body_runs()) {
        core_.begin_ending(next, lost_reason::shutting_down, actions);
        return true;
    }
    stop_body(next, lost_reason::shutting_down, actions);
    // The lock stays until its body ends. Locks that have not been notified of the shutdown are at the front.
    held_.splice(held_.end(), held_, held_.iterator_to(next));
    return true;
}

void lease_table::start_renewal(record& held, time_point now, deferred_actions& actions)
{
    held.lease_state().plan.forget_renewal();
    // The operation in flight schedules the next renewal when it ends.
    if (held.in_flight != operation::none)
        return;
    const auto ttl = held.lease_state().plan.renewal_ttl(now, held.ttl(), core_.limits.min_ttl);
    if (!ttl || is_too_short(*ttl, core_.backend->max_clock_lead(*ttl)))
        return;
    try {
        actions.add_request(deferred_actions::action::renew, held);
    } catch (const std::bad_alloc&) {
        held.lease_state().plan.schedule_renewal(saturating_add(now, delay_without_memory));
        reschedule(held);
        return;
    }
    held.in_flight = operation::extend;
    held.lease_state().extension.ttl = *ttl;
    held.lease_state().extension.result.reset();
    held.set_operation_start(now);
    cleanup_queue::note_request(held, *ttl);
}

void lease_table::watch_session(record& held)
{
    const auto& session = held.lease().session();
    if (session_.lock() == session)
        return;
    session_ = session;
    session->watch(core_.weak_from_this().lock());
    // The session may have ended just before.
    if (session->valid_until() == time_point::min())
        core_.timers.schedule(held, lease_clock::now());
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
    if (held.lease_state().plan.body_must_stop())
        core_.begin_ending(held, held.lease_state().plan.stop_reason(), actions);
    else if (const auto now = lease_clock::now(); held.lease().has_ended(now))
        core_.begin_ending(held, end_reason_of(held, now), actions);
    return held.end_reason;
}

void lease_table::apply_requested_ttl(record& held, milliseconds ttl, deferred_actions& actions)
{
    cleanup_queue::note_request(held, ttl);
    if (const auto sooner = held.lease_state().plan.on_shortened(request_of(held, ttl), held.lease().ttl_bound())) {
        held.lease().set_ttl_bound(*sooner);
        core_.queues.wake_for_earlier_expiry(held, saturating_add(held.operation_start(), ttl), actions.wakes);
    }
}

void lease_table::on_extended(record& subject, extend_outcome&& outcome, deferred_actions& actions)
{
    subject.end_operation_in_flight();
    const auto result = std::move(subject.lease_state().extension.result);
    // A renewal of an incomplete group may be answered after the completion of the group.
    const bool is_renewal = !result && !subject.group_in_progress && subject.lease_state().plan.renews();
    const bool tells = core_.options.observer && (result ? !subject.group_in_progress : is_renewal);
    if (outcome.status == extend_status::failed && outcome.error->code == errc::outcome_unknown)
        subject.lower_late_ttl(subject.lease_state().extension.ttl);
    if (subject.current_phase() == phase::ended)
        return;
    if (subject.current_phase() == phase::ending) {
        core_.cleanup.start_release(subject, actions);
    } else if (outcome.status == extend_status::extended && !subject.lease().has_ended(lease_clock::now())) {
        subject.release_state().error = nullptr;
        if (result)
            subject.set_ttl(subject.lease_state().extension.ttl);
        else if (is_renewal)
            ++core_.stats.renewals;
        subject.lease().set_ttl_bound(subject.lease_state().plan.on_extended(
            request_of(subject, subject.lease_state().extension.ttl), std::min(subject.ttl(), subject.late_ttl())));
        if (!result && tells) {
            core_.events.add({.what = lock_event::kind::renewed,
                .subject = &subject,
                .span = subject.lease().valid_until() - lease_clock::now()});
        }
    } else if (outcome.status != extend_status::failed) {
        // An answer that came after the deadline cannot restore a lock that was not held for a while.
        core_.begin_ending(subject, end_reason_of(subject, lease_clock::now()), actions);
    } else if (subject.lease_state().plan.renews()) {
        if (is_renewal)
            ++core_.stats.renewal_errors;
        subject.lease_state().plan.on_failed(lease_clock::now());
        subject.release_state().error = outcome.error;
        if (tells)
            core_.events.add({.what = lock_event::kind::at_risk, .subject = &subject, .why = outcome.error->code});
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

void lease_table::on_queried(record& subject, bool is_lost, deferred_actions& actions)
{
    subject.end_operation_in_flight();
    const auto now = lease_clock::now();
    if (subject.current_phase() == phase::ending) {
        COLOCK_SOMETIMES(lock_is_released_during_a_query);
        core_.cleanup.start_release(subject, actions);
    } else if (is_lost) {
        core_.begin_ending(subject, end_reason_of(subject, now), actions);
    } else if (subject.current_phase() == phase::held) {
        // A renewal that became due meanwhile was postponed because of this operation.
        subject.lease_state().plan.catch_up(now);
        reschedule(subject);
        if (subject.is_to_be_verified)
            verify(subject, actions);
    }
    subject.notify(actions.wakes);
}

void lease_table::on_contact_lost(time_point now)
{
    for (record& held : held_) {
        if (core_.options.observer && !held.group_in_progress)
            core_.events.add({.what = lock_event::kind::at_risk, .subject = &held, .why = errc::unavailable});
        // The renewal also shows whether the lease still exists, so it is due at once.
        if (held.lease_state().plan.renews() && held.in_flight == operation::none) {
            held.lease_state().plan.schedule_renewal(now);
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
            core_.timers.schedule(held, now);
    }
}

} // namespace colock::inline v0::detail
