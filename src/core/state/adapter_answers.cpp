// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Handlers of the adapter's reports.
#include "core/state/batches.hpp"
#include "core/state/core.hpp"
#include "util/simulation_marks.hpp"

#include <algorithm>
#include <utility>

namespace colock::inline v0::detail {

lease_clock::time_point core::note_answer_time(record& asked, create_status answer) noexcept
{
    // A request that was made before the first connection existed was sent when the connection was established, at the
    // earliest.
    asked.set_operation_start(std::max(asked.operation_start(), backend->connected_at()));
    const auto now = lease_clock::now();
    if (COLOCK_DEFECT(lease_from_answer))
        asked.set_operation_start(now);
    if (answer != create_status::failed)
        answers.add(now - asked.operation_start());
    return now;
}

void core::note_failure(failure_ptr& why) const
{
    if (!why)
        why = make_failure(errc::outcome_unknown, "the adapter reported a failure without an error");
    backend->warn_of_refusal(*why);
}

void core::on_created(record& subject, create_outcome&& outcome)
{
    if (outcome.status == create_status::failed)
        note_failure(outcome.error);
    update([&](deferred_actions& actions) {
        subject.in_flight = operation::none;
        if (subject.current_phase() == phase::ended)
            return;
        const auto now = can.immediate ? time_point() : note_answer_time(subject, outcome.status);
        ++stats.attempts;
        // Written under the mutex only.
        subject.attempts_made.store(
            subject.attempts_made.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        const bool unknown = outcome.status == create_status::failed && outcome.error->code == errc::outcome_unknown;
        if (unknown) {
            subject.mark_in_doubt();
            // If this create arrives after a repeated one, it finds the grant, and sets its TTL again.
            if (subject.ttl() > subject.ttl().zero())
                subject.lower_late_ttl(subject.ttl());
        }
        if (outcome.status == create_status::busy)
            ++stats.busy;
        if (unknown || outcome.status == create_status::granted ||
            (outcome.status == create_status::busy && subject.keeps_place()))
            subject.left_trace = true;

        if (subject.current_phase() == phase::ending) {
            COLOCK_SOMETIMES(acquire_is_given_up_before_its_answer);
            subject.granted = outcome.status == create_status::granted;
            cleanup_queue::note_request(subject, subject.ttl());
            if (subject.left_trace)
                cleanup.start_release(subject, actions);
            else
                finish(subject, true, actions);
        } else if (outcome.status == create_status::granted && !closed_to_new.load(std::memory_order_relaxed) &&
                   (can.immediate || lease_plan::arrives_in_time(leases.request_of(subject, subject.ttl()),
                                         subject.lease().session_until(), now, margins)))
        {
            grant(subject, outcome.fence, actions);
        } else {
            return_to_queue(subject, std::move(outcome), actions);
        }
    });
}

void core::on_refused(record& subject, create_outcome* busy)
{
    update([&](deferred_actions& actions) {
        subject.in_flight = operation::none;
        if (subject.current_phase() == phase::ended)
            return;
        if (busy) {
            static_cast<void>(note_answer_time(subject, create_status::busy));
            ++stats.attempts;
            ++stats.busy;
        }
        if (subject.current_phase() == phase::acquiring) {
            if (busy) {
                subject.attempts_made.store(
                    subject.attempts_made.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
                return_to_queue(subject,
                    create_outcome::busy(busy->retry_after, std::move(busy->holder), std::move(busy->holder_host)),
                    actions);
            } else {
                subject.notify(actions.wakes);
            }
        } else {
            finish(subject, true, actions);
        }
    });
}

void core::on_woken(const record::ptr& waiting, std::uint32_t wait_number)
{
    update([&](deferred_actions& actions) {
        if (waiting->current_phase() != phase::acquiring || !waiting->acquire().plan.end_wait(wait_number))
            return;
        key_queues::forget_release(*waiting);
        waiting->notify(actions.wakes);
    });
}

void core::on_released(record& subject, release_outcome&& outcome)
{
    if (outcome.status == release_status::failed)
        note_failure(outcome.error);
    update([&](deferred_actions& actions) { cleanup.on_released(subject, std::move(outcome), actions); });
}

void core::on_handed_over(record& ending, record& next, hand_over_outcome&& outcome)
{
    if (outcome.released.status == release_status::failed) {
        note_failure(outcome.released.error);
        if (outcome.released.error->code == errc::outcome_unknown) {
            COLOCK_SOMETIMES(hand_over_of_unknown_outcome);
            ending.mark_in_doubt();
        }
    }
    if (options.observer && outcome.released.status == release_status::released) {
        // The release is reported to the observer before the grant, but the grant is processed first. In the other
        // order, another locker on Redis waited 2.5 s for the lock instead of 10 ms (`colock-bench`, part `contended`).
        const std::lock_guard guard(mutex);
        if (ending.current_phase() == phase::ending && !ending.release_state().is_settling &&
            !std::exchange(ending.release_state().reported_early, true))
            events.add(
                {.what = lock_event::kind::released, .subject = &ending, .span = ending.release_state().held.span()});
    }
    on_created(next, std::move(outcome.created));
    on_released(ending, std::move(outcome.released));
}

void core::on_extended(const record::ptr& held, extend_outcome outcome)
{
    if (outcome.status == extend_status::failed)
        note_failure(outcome.error);
    update([&](deferred_actions& actions) { leases.on_extended(*held, std::move(outcome), actions); });
}

void core::on_checked(record& held, valid_outcome&& outcome, std::optional<valid_outcome>* result)
{
    if (outcome.error)
        note_failure(outcome.error);
    update([&](deferred_actions& actions) {
        if (held.current_phase() == phase::ended)
            return;
        leases.on_queried(held, !outcome.error && !outcome.valid, actions);
        if (result)
            *result = std::move(outcome);
    });
}

void core::declare_lost(const record::ptr& held, lost_reason reason)
{
    update([&](deferred_actions& actions) {
        // The grant was broken before its answer was processed: see `grant`.
        if (held->current_phase() == phase::acquiring && !held->acquire().loss_before_grant)
            held->acquire().loss_before_grant = reason;
        begin_ending(*held, reason, actions);
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
    run_in_batches(*this,
        [this](deferred_actions& actions) { return queues.wake_after_contact(actions.wakes); });
}

void core::on_session_ended(const session_lease& session) noexcept
{
    const std::lock_guard guard(mutex);
    leases.on_session_ended(session);
}

} // namespace colock::inline v0::detail
