// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/pending_releases.hpp"

#include "core/state/core.hpp"
#include "util/simulation_marks.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace colock::inline v0::detail {

using namespace std::chrono_literals;

namespace {

/// Limits of the time for which the heads of a queue leave the lock to other lockers.
constexpr auto min_time_for_others = 500us;
constexpr auto max_time_for_others = 20ms;

} // namespace

void pending_releases::add(lock_record& record)
{
    record.release_state().retries.note_expiry(record.operation_start(), record.ttl());
    intrusive_ptr_add_ref(&record);
    ending_.push_back(record);
    ++size_;
}

void pending_releases::remove(lock_record& record, deferred_actions& actions)
{
    ending_.erase(ending_.iterator_to(record));
    --size_;
    actions.removed.push_back(record);
    if (ending_.empty()) {
        actions.kept_core = std::move(kept_);
        core_.shutdown.drained().notify(actions.wakes);
    }
}

void pending_releases::send_release(lock_record& record, deferred_actions& actions)
{
    if (core_.dead && !core_.can.immediate)
        return core_.finish(record, false, actions);
    // The completion of the operation in flight calls this function again. A release must not overtake a create or an
    // extend.
    if (record.in_flight != operation::none)
        return;
    auto& state = record.release_state();
    lock_record::ptr next;
    if (!core_.dead && !state.is_in_background && record.granted)
        next = core_.queues.pick_for_hand_over(record, actions.wakes);
    try {
        if (next && next->acquire_state().plan.is_listening())
            actions.add_request(deferred_actions::action::cancel_wait, *next);
        if (next)
            actions.add_request(deferred_actions::action::hand_over, record, next);
        else
            actions.add_request(record.granted && !record.in_doubt() ? deferred_actions::action::release
                                                                     : deferred_actions::action::release_settled,
                record);
    } catch (const std::bad_alloc&) {
        return retry_later(record, actions);
    }
    const auto now = lease_clock::now();
    record.in_flight = operation::release;
    record.set_operation_start(now);
    // The release is reported before it is sent, because another thread may be granted the lock, and report the grant,
    // while the call is still in progress.
    if (core_.options.observer && core_.can.immediate && !state.is_in_background && record.granted) {
        state.release_reported = true;
        core_.events.add({.type = lock_event::kind::released, .record = &record, .span = state.time_held.span()});
    }
    if (next) {
        // A wait at the adapter was cancelled above.
        static_cast<void>(key_queues::prepare_attempt(*next, now, false));
        next->acquire_state().open_to_hand_over = false;
    } else {
        record.set_has_local_waiters(core_.queues.find(record) != nullptr);
    }
}

void pending_releases::on_released(lock_record& record, release_outcome&& outcome, deferred_actions& actions)
{
    record.in_flight = operation::none;
    if (outcome.others_wait && !core_.can.fifo) {
        if (key_queue* queue = core_.queues.find(record)) {
            const auto now = lease_clock::now();
            queue->leave_to_others_until = now + std::clamp<lease_clock::duration>(2 * (now - record.operation_start()),
                                                     min_time_for_others, max_time_for_others);
        }
    }
    const bool late_grant = record.releases_late_grant;
    record.releases_late_grant = false;
    if (record.current_phase() == phase::acquiring) {
        // The acquire continues. If the release is not proven, the claim may still exclude all others, and the release
        // may still arrive. The acquire therefore continues with another claim, which has another token, and this claim
        // is cleaned up separately.
        if (outcome.status == release_status::failed && !COLOCK_DEFECT(late_release)) {
            COLOCK_SOMETIMES(release_of_an_acquire_that_continues_fails);
            record.mark_release_in_doubt();
        }
        record.notify(actions.wakes);
    } else if (record.current_phase() == phase::ending && late_grant) {
        // The answered request was the release of a late grant, and the acquire was given up meanwhile. The claim
        // itself is still to be released.
        COLOCK_SOMETIMES(acquire_is_given_up_during_the_release_of_a_late_grant);
        send_release(record, actions);
    } else if (record.current_phase() == phase::ending) {
        auto& state = record.release_state();
        const bool failed = outcome.status == release_status::failed;
        // The session that could have proven the release is lost, so no later attempt can prove it.
        const bool is_final = failed && outcome.error->cause == errc::lost;
        if (!std::exchange(state.answered, true)) {
            state.status = outcome.status;
            state.error = std::move(outcome.error);
        }
        if (failed && !is_final) {
            retry_later(record, actions);
        } else {
            state.is_in_background = state.is_in_background || failed;
            core_.finish(record, !failed, actions);
        }
    }
}

void pending_releases::retry_later(lock_record& record, deferred_actions& actions)
{
    auto& state = record.release_state();
    state.is_in_background = true;
    if (core_.dead || !state.retries.on_failed(lease_clock::now(), core_.can.expires, core_.options.operation_timeout))
    {
        COLOCK_SOMETIMES(cleanup_ends_without_proof);
        return core_.finish(record, false, actions);
    }
    // The release may have been executed, so the waiters of the key have to ask the backend, unless the backend wakes
    // them. Not all heads are woken: thousands of shared locks may be released at once, and each failure would wake all
    // waiters.
    if (record.granted)
        core_.queues.wake_after_release(record, actions.wakes);
    // The caller that waited for the first answer may return now, so this object keeps the core alive.
    if (!kept_)
        kept_ = core_.weak_from_this().lock();
    core_.timers.schedule(record, record.release_due());
    record.notify(actions.wakes);
}

void pending_releases::keep_core_until_all_released(const lock_record& record)
{
    if (record.current_phase() == phase::ending && record.list_hook::is_linked() && !kept_)
        kept_ = core_.weak_from_this().lock();
}

bool pending_releases::is_inside_call(const lock_record& record) const noexcept
{
    return core_.can.immediate && record.in_flight != operation::none;
}

unsigned pending_releases::calls_in_flight() const noexcept
{
    return static_cast<unsigned>(
        std::ranges::count_if(ending_, [this](const lock_record& each) { return is_inside_call(each); }));
}

void pending_releases::give_up(deferred_actions& actions)
{
    for (auto next = ending_.begin(); next != ending_.end();) {
        lock_record& unanswered = *next++;
        if (is_inside_call(unanswered))
            continue;
        unanswered.release_state().is_in_background = true;
        core_.finish(unanswered, false, actions);
    }
}

const std::vector<std::string>& pending_releases::give_up_and_list_keys(deferred_actions& actions)
{
    for (const lock_record& unanswered : ending_) {
        if (!is_inside_call(unanswered))
            given_up_keys_.push_back(unanswered.key());
    }
    give_up(actions);
    return given_up_keys_;
}

} // namespace colock::inline v0::detail
