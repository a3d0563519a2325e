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

/// Delay after which a request is added again, if there was no memory to add it. The `bad_alloc` is not passed on,
/// because the requests of other locks that were added before would be dropped.
constexpr milliseconds delay_without_memory{10};

} // namespace

lease_request lease_table::lease_request_for(const lock_record& record, milliseconds ttl) const noexcept
{
    // An earlier request that is unanswered may still arrive, and set its TTL.
    const auto smaller_ttl = std::min(ttl, record.late_ttl());
    return {record.operation_start(), smaller_ttl, core_.backend->max_clock_lead(smaller_ttl)};
}

void lease_table::add(lock_record& record)
{
    held_.push_back(record);
    if (record.lease().session())
        watch_session(record);
    if (record.lease_state().plan.renews() || is_watched(record) || record.due != time_point::max() ||
        record.lease_state().plan.is_bounded())
        reschedule(record);
}

bool lease_table::is_watched(const lock_record& record) const noexcept
{
    return core_.watches_all || (core_.can.extends_groups && !record.owner().group.empty());
}

void lease_table::query(lock_record& record, deferred_actions& actions)
{
    record.is_to_be_queried = true;
    if (record.in_flight != operation::none)
        return;
    try {
        actions.add_request(deferred_actions::action::query, record);
    } catch (const std::bad_alloc&) {
        core_.timers.schedule(record, saturating_add(lease_clock::now(), delay_without_memory));
        return;
    }
    record.is_to_be_queried = false;
    record.in_flight = operation::query;
    record.set_operation_start(lease_clock::now());
}

void lease_table::reschedule(lock_record& record)
{
    const auto due = record.lease_state().plan.due(record.lease().valid_until(), core_.margins, is_watched(record));
    core_.timers.schedule(record, std::min(due, record.lease_state().earliest_wait_deadline));
}

/// Returns false if the lease has ended.
bool lease_table::follow_plan(lock_record& record, time_point now, deferred_actions& actions)
{
    for (;;) {
        const auto expiry = record.lease().has_ended(now) ? time_point::min() : record.lease().valid_until();
        const auto next = record.lease_state().plan.next(now, expiry, core_.margins, is_watched(record));
        switch (next.kind) {
        case lease_plan::action::lose:
            core_.end_and_release(record, end_reason_of(record, now), actions);
            return false;
        case lease_plan::action::stop_body:
            stop_body(record, lost_reason::expired, actions);
            break;
        case lease_plan::action::renew:
            start_renewal(record, now, actions);
            break;
        case lease_plan::action::wait:
            return true;
        }
    }
}

void lease_table::stop_body(lock_record& record, lost_reason reason, deferred_actions& actions)
{
    record.lease_state().plan.stop_body(reason);
    record.notify(actions.wakes);
}

bool lease_table::shut_down_next(deferred_actions& actions)
{
    if (held_.empty() || held_.front().lease_state().shutdown_notified)
        return false;
    lock_record& next = held_.front();
    next.lease_state().shutdown_notified = true;
    if (!next.lease_state().plan.body_runs()) {
        core_.end_and_release(next, lost_reason::shutting_down, actions);
        return true;
    }
    stop_body(next, lost_reason::shutting_down, actions);
    // The lock stays until its body ends. Locks that have not been notified of the shutdown are at the front.
    held_.splice(held_.end(), held_, held_.iterator_to(next));
    return true;
}

void lease_table::start_renewal(lock_record& record, time_point now, deferred_actions& actions)
{
    record.lease_state().plan.forget_renewal();
    // The operation in flight schedules the next renewal when it ends.
    if (record.in_flight != operation::none)
        return;
    const auto ttl = record.lease_state().plan.renewal_ttl(now, record.ttl(), core_.limits.min_ttl);
    if (!ttl || is_too_short(*ttl, core_.backend->max_clock_lead(*ttl)))
        return;
    try {
        actions.add_request(deferred_actions::action::extend, record);
    } catch (const std::bad_alloc&) {
        record.lease_state().plan.schedule_renewal(saturating_add(now, delay_without_memory));
        reschedule(record);
        return;
    }
    record.in_flight = operation::extend;
    record.lease_state().extension.ttl = *ttl;
    record.lease_state().extension.result.reset();
    record.set_operation_start(now);
    record.release_state().retries.note_expiry(now, *ttl);
}

void lease_table::watch_session(lock_record& record)
{
    const auto& session = record.lease().session();
    if (session_.lock() == session)
        return;
    session_ = session;
    session->watch(core_.weak_from_this().lock());
    // The session may have ended just before.
    if (session->valid_until() == time_point::min())
        core_.timers.schedule(record, lease_clock::now());
}

lost_reason lease_table::end_reason_of(const lock_record& record, time_point now) noexcept
{
    const auto& session = record.lease().session();
    if (session && session->has_ended(now))
        return lost_reason::session;
    return record.lease().has_ended(now) ? lost_reason::expired : lost_reason::taken;
}

std::optional<lost_reason> lease_table::end_if_lost(lock_record& record, deferred_actions& actions)
{
    if (record.current_phase() != phase::held)
        return record.end_reason;
    // The timer may be late if the body kept its thread busy.
    if (record.lease_state().plan.body_must_stop())
        core_.end_and_release(record, record.lease_state().plan.stop_reason(), actions);
    else if (const auto now = lease_clock::now(); record.lease().has_ended(now))
        core_.end_and_release(record, end_reason_of(record, now), actions);
    return record.end_reason;
}

void lease_table::apply_requested_ttl(lock_record& record, milliseconds ttl, deferred_actions& actions)
{
    record.release_state().retries.note_expiry(record.operation_start(), ttl);
    const auto earlier_expiry =
        record.lease_state().plan.on_shortened(lease_request_for(record, ttl), record.lease().ttl_bound());
    if (earlier_expiry) {
        record.lease().set_ttl_bound(*earlier_expiry);
        core_.queues.wake_for_earlier_expiry(record, saturating_add(record.operation_start(), ttl), actions.wakes);
    }
}

void lease_table::on_extended(lock_record& record, extend_outcome&& outcome, deferred_actions& actions)
{
    record.end_operation_in_flight();
    const auto result = std::move(record.lease_state().extension.result);
    // The renewals of an incomplete group are neither counted nor reported, also if they are answered after its
    // completion.
    const bool is_counted_renewal = !result && !record.group_in_progress && record.lease_state().plan.renews();
    const bool is_reported = core_.options.observer && (result ? !record.group_in_progress : is_counted_renewal);
    if (outcome.status == extend_status::failed && outcome.error->code == errc::outcome_unknown)
        record.lower_late_ttl(record.lease_state().extension.ttl);
    if (record.current_phase() == phase::ended)
        return;
    if (record.current_phase() == phase::ending) {
        core_.releases.send_release(record, actions);
    } else if (outcome.status == extend_status::extended && !record.lease().has_ended(lease_clock::now())) {
        record.lease_state().renewal_error = nullptr;
        if (result)
            record.set_ttl(record.lease_state().extension.ttl);
        else if (is_counted_renewal)
            ++core_.stats.renewals;
        record.lease().set_ttl_bound(record.lease_state().plan.on_extended(
            lease_request_for(record, record.lease_state().extension.ttl), std::min(record.ttl(), record.late_ttl())));
        if (!result && is_reported) {
            core_.events.add({.type = lock_event::kind::renewed,
                .record = &record,
                .span = record.lease().valid_until() - lease_clock::now()});
        }
    } else if (outcome.status != extend_status::failed) {
        // Not held any more, or answered after the expiry: a lock that counted as lost meanwhile is not restored.
        core_.end_and_release(record, end_reason_of(record, lease_clock::now()), actions);
    } else if (record.lease_state().plan.renews()) {
        if (is_counted_renewal)
            ++core_.stats.renewal_errors;
        record.lease_state().plan.on_failed(lease_clock::now());
        record.lease_state().renewal_error = outcome.error;
        if (is_reported)
            core_.events.add({.type = lock_event::kind::at_risk, .record = &record, .error = outcome.error->code});
    }
    if (result)
        result->emplace(std::move(outcome));
    if (record.group_in_progress)
        record.group_in_progress->notify(actions.wakes);
    if (record.current_phase() == phase::held) {
        reschedule(record);
        if (record.is_to_be_queried)
            query(record, actions);
    }
    record.notify(actions.wakes);
}

void lease_table::on_queried(lock_record& record, bool is_lost, deferred_actions& actions)
{
    record.end_operation_in_flight();
    const auto now = lease_clock::now();
    if (record.current_phase() == phase::ending) {
        COLOCK_SOMETIMES(lock_is_released_during_a_query);
        core_.releases.send_release(record, actions);
    } else if (is_lost) {
        core_.end_and_release(record, end_reason_of(record, now), actions);
    } else if (record.current_phase() == phase::held) {
        // A renewal that became due meanwhile was postponed because of this operation.
        record.lease_state().plan.catch_up(now);
        reschedule(record);
        if (record.is_to_be_queried)
            query(record, actions);
    }
    record.notify(actions.wakes);
}

void lease_table::on_contact_lost(time_point now)
{
    for (lock_record& record : held_) {
        if (core_.options.observer && !record.group_in_progress)
            core_.events.add({.type = lock_event::kind::at_risk, .record = &record, .error = errc::unavailable});
        // The renewal also shows whether the lease still exists, so it is due at once.
        if (record.lease_state().plan.renews() && record.in_flight == operation::none) {
            record.lease_state().plan.schedule_renewal(now);
            reschedule(record);
        }
    }
}

/// Schedules the locks of the session for now. The timer then ends them in batches.
void lease_table::on_session_ended(const session_lease& session)
{
    const auto now = lease_clock::now();
    for (lock_record& record : held_) {
        if (record.lease().session().get() == &session)
            core_.timers.schedule(record, now);
    }
}

} // namespace colock::inline v0::detail
