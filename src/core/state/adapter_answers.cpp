// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Handlers of the adapter's reports.
#include "core/state/core.hpp"
#include "core/state/run_in_batches.hpp"
#include "util/simulation_marks.hpp"

#include <algorithm>
#include <utility>

namespace colock::inline v0::detail {

lease_clock::time_point core::note_answer_time(lock_record& record, create_status answer) noexcept
{
    // A request that waited for the first connection was not sent before that connection existed.
    record.set_operation_start(std::max(record.operation_start(), backend->connected_at()));
    const auto now = lease_clock::now();
    if (COLOCK_DEFECT(lease_from_answer))
        record.set_operation_start(now);
    if (answer != create_status::failed)
        answers.add(now - record.operation_start());
    return now;
}

void core::complete_failure(failure_ptr& failure) const
{
    if (!failure)
        failure = make_failure(errc::outcome_unknown, "the adapter reported a failure without an error");
    backend->warn_of_refusal(*failure);
}

void core::on_created(lock_record& record, create_outcome&& outcome)
{
    if (outcome.status == create_status::failed)
        complete_failure(outcome.error);
    update([&](deferred_actions& actions) {
        record.in_flight = operation::none;
        if (record.current_phase() == phase::ended)
            return;
        const auto now = can.immediate ? time_point() : note_answer_time(record, outcome.status);
        ++stats.attempts;
        // Written under the mutex only.
        record.attempts_made.store(record.attempts_made.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        const bool unknown = outcome.status == create_status::failed && outcome.error->code == errc::outcome_unknown;
        if (unknown) {
            record.mark_in_doubt();
            // This create may still be executed after a later one was granted. It then sets the TTL again, which may
            // shorten the lease.
            if (record.ttl() > record.ttl().zero())
                record.lower_late_ttl(record.ttl());
        }
        if (outcome.status == create_status::busy)
            ++stats.busy;
        if (unknown || outcome.status == create_status::granted ||
            (outcome.status == create_status::busy && record.keeps_place()))
            record.may_exist_in_backend = true;

        if (record.current_phase() == phase::ending) {
            COLOCK_SOMETIMES(acquire_is_given_up_before_its_answer);
            record.granted = outcome.status == create_status::granted;
            record.release_state().retries.note_expiry(record.operation_start(), record.ttl());
            if (record.may_exist_in_backend)
                releases.send_release(record, actions);
            else
                finish(record, true, actions);
        } else if (outcome.status == create_status::granted && !closed_to_new.load(std::memory_order_relaxed) &&
                   (can.immediate || lease_plan::arrives_in_time(leases.lease_request_for(record, record.ttl()),
                                         record.lease().session_until(), now, margins)))
        {
            grant(record, outcome.fence, actions);
        } else {
            deliver_answer(record, std::move(outcome), actions);
        }
    });
}

void core::on_refused(lock_record& record, create_outcome* busy)
{
    update([&](deferred_actions& actions) {
        record.in_flight = operation::none;
        if (record.current_phase() == phase::ended)
            return;
        if (busy) {
            static_cast<void>(note_answer_time(record, create_status::busy));
            ++stats.attempts;
            ++stats.busy;
        }
        if (record.current_phase() == phase::acquiring) {
            if (busy) {
                record.attempts_made.store(
                    record.attempts_made.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
                deliver_answer(record,
                    create_outcome::busy(busy->retry_after, std::move(busy->holder), std::move(busy->holder_host)),
                    actions);
            } else {
                record.notify(actions.wakes);
            }
        } else {
            finish(record, true, actions);
        }
    });
}

void core::on_woken(const lock_record::ptr& record, std::uint32_t wait_number)
{
    update([&](deferred_actions& actions) {
        if (record->current_phase() != phase::acquiring || !record->acquire_state().plan.end_wait(wait_number))
            return;
        key_queues::remove_from_wake_on_release(*record);
        record->notify(actions.wakes);
    });
}

void core::on_released(lock_record& record, release_outcome&& outcome)
{
    if (outcome.status == release_status::failed)
        complete_failure(outcome.error);
    update([&](deferred_actions& actions) { releases.on_released(record, std::move(outcome), actions); });
}

void core::on_handed_over(lock_record& holder, lock_record& next, hand_over_outcome&& outcome)
{
    if (outcome.released.status == release_status::failed) {
        complete_failure(outcome.released.error);
        if (outcome.released.error->code == errc::outcome_unknown) {
            COLOCK_SOMETIMES(hand_over_of_unknown_outcome);
            holder.mark_in_doubt();
        }
    }
    if (options.observer && outcome.released.status == release_status::released) {
        // The release is reported to the observer before the grant, but the grant is processed first. In the other
        // order, another locker on Redis waited 2.5 s for the lock instead of 10 ms (`colock-bench`, part `contended`).
        const std::lock_guard guard(mutex);
        if (holder.current_phase() == phase::ending && !holder.release_state().is_in_background &&
            !std::exchange(holder.release_state().release_reported, true))
            events.add({.type = lock_event::kind::released,
                .record = &holder,
                .span = holder.release_state().time_held.span()});
    }
    on_created(next, std::move(outcome.created));
    on_released(holder, std::move(outcome.released));
}

void core::on_extended(const lock_record::ptr& record, extend_outcome outcome)
{
    if (outcome.status == extend_status::failed)
        complete_failure(outcome.error);
    update([&](deferred_actions& actions) { leases.on_extended(*record, std::move(outcome), actions); });
}

void core::on_queried(lock_record& record, valid_outcome&& outcome, std::optional<valid_outcome>* result)
{
    if (outcome.error)
        complete_failure(outcome.error);
    update([&](deferred_actions& actions) {
        if (record.current_phase() == phase::ended)
            return;
        leases.on_queried(record, !outcome.error && !outcome.valid, actions);
        if (result)
            *result = std::move(outcome);
    });
}

void core::declare_lost(const lock_record::ptr& record, lost_reason reason)
{
    update([&](deferred_actions& actions) {
        // The grant was broken before its answer was processed: see `grant`.
        if (record->current_phase() == phase::acquiring && !record->acquire_state().loss_before_grant)
            record->acquire_state().loss_before_grant = reason;
        end_and_release(*record, reason, actions);
    });
}

void core::on_contact_lost() noexcept
{
    update([&](deferred_actions&) { leases.on_contact_lost(lease_clock::now()); });
}

void core::on_contact_regained() noexcept
{
    {
        const std::lock_guard guard(mutex);
        queues.on_contact_regained();
    }
    run_in_batches(*this, [this](deferred_actions& actions) { return queues.wake_after_contact(actions.wakes); });
}

void core::on_session_ended(const session_lease& session) noexcept
{
    const std::lock_guard guard(mutex);
    leases.on_session_ended(session);
}

} // namespace colock::inline v0::detail
