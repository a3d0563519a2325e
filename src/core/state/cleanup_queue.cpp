// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/cleanup_queue.hpp"

#include "core/state/core.hpp"
#include "util/simulation_marks.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace colock::inline v0::detail {

using namespace std::chrono_literals;

namespace {

constexpr decltype(release_state::backoff) backoff_first{50};
constexpr decltype(release_state::backoff) backoff_cap{2000};

} // namespace

void cleanup_queue::note_request(record& claim, std::chrono::milliseconds ttl) noexcept
{
    claim.release_state().latest_expiry = std::max(claim.release_state().latest_expiry,
        ttl == 0ms ? time_point::max() : saturating_add(claim.operation_start(), ttl));
}

cleanup_queue::time_point cleanup_queue::release_deadline(const record& record) const noexcept
{
    // A claim that the server does not end by itself exists until it is released.
    return core_.can.expires ? saturating_add(record.release_state().latest_expiry, core_.options.operation_timeout)
                             : time_point::max();
}

void cleanup_queue::add(record& record)
{
    note_request(record, record.ttl());
    intrusive_ptr_add_ref(&record);
    ending_.push_back(record);
    ++core_.stats.settling;
}

void cleanup_queue::remove(record& record, deferred_actions& actions)
{
    ending_.erase(ending_.iterator_to(record));
    actions.removed.push_back(record);
    --core_.stats.settling;
    if (ending_.empty()) {
        actions.kept_core = std::move(kept_);
        drained_.notify(actions.wakes);
    }
}

void cleanup_queue::start_release(record& record, deferred_actions& actions)
{
    if (core_.dead && !core_.can.immediate)
        return core_.finish(record, false, actions);
    // `on_released` calls this function again: nothing may overtake a create or an extend that is in flight.
    if (record.in_flight != operation::none)
        return;
    record::ptr next;
    if (!core_.dead && !record.release_state().is_settling && record.granted)
        next = core_.queues.pick_for_hand_over(record, actions.wakes);
    try {
        if (next && next->acquire().plan.is_listening())
            actions.add_request(deferred_actions::action::cancel_wait, *next);
        if (next)
            actions.add_request(deferred_actions::action::hand_over, record, next);
        else
            actions.add_request(record.granted && !record.in_doubt() ? deferred_actions::action::release
                                                                     : deferred_actions::action::abandon,
                record);
    } catch (const std::bad_alloc&) {
        return retry_later(record, actions);
    }
    const auto now = lease_clock::now();
    record.in_flight = operation::release;
    record.set_operation_start(now);
    // The release is reported before it is sent, because another thread may be granted the lock, and report the grant,
    // while the call is still in progress.
    if (core_.options.observer && core_.can.immediate && !record.release_state().is_settling && record.granted) {
        record.release_state().reported_early = true;
        core_.events.add(
            {.type = lock_event::kind::released, .record = &record, .span = record.release_state().held.span()});
    }
    if (next) {
        next->sends_create();
        next->acquire().open_to_hand_over = false;
        next->set_operation_start(now);
        static_cast<void>(next->acquire().plan.on_sent(false));
        key_queues::expect_release(*next);
    } else {
        record.set_has_local_waiters(core_.queues.find(record) != nullptr);
    }
}

void cleanup_queue::on_released(record& record, release_outcome&& outcome, deferred_actions& actions)
{
    record.in_flight = operation::none;
    if (outcome.others_wait && !core_.can.fifo) {
        if (key_queue* queue = core_.queues.find(record)) {
            const auto now = lease_clock::now();
            queue->yields_until =
                now + std::clamp<lease_clock::duration>(2 * (now - record.operation_start()), 500us, 20ms);
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
        start_release(record, actions);
    } else if (record.current_phase() == phase::ending) {
        const bool failed = outcome.status == release_status::failed;
        // The session that could have proven the release is lost, so no later attempt can prove it.
        const bool is_final = failed && outcome.error->cause == errc::lost;
        if (!std::exchange(record.release_state().answered, true)) {
            record.release_state().status = outcome.status;
            // After a loss nobody asks for the answer to the release, but for the reason why the lease could not be
            // kept.
            if (!record.release_state().is_settling)
                record.release_state().error = std::move(outcome.error);
        }
        if (failed && !is_final) {
            retry_later(record, actions);
        } else {
            record.release_state().is_settling = record.release_state().is_settling || failed;
            core_.finish(record, !failed, actions);
        }
    }
}

void cleanup_queue::retry_later(record& record, deferred_actions& actions)
{
    record.release_state().is_settling = true;
    const auto now = lease_clock::now();
    const time_point release_deadline = this->release_deadline(record);
    if (core_.dead || now >= release_deadline) {
        COLOCK_SOMETIMES(cleanup_ends_without_proof);
        return core_.finish(record, false, actions);
    }
    // The release may or may not have been executed, so the waiters of the key have to check the backend themselves,
    // unless the backend wakes them. Thousands of shared locks may be released at once, and each failure would wake
    // all waiters.
    if (record.granted)
        core_.queues.wake_after_release(record, actions.wakes);
    // The caller that waited for the first answer may return now, so the cleanup keeps the core alive.
    if (!kept_)
        kept_ = core_.weak_from_this().lock();
    record.release_state().backoff = std::clamp<decltype(record.release_state().backoff)>(
        record.release_state().backoff * 2U, backoff_first, backoff_cap);
    record.release_state().retry_at = std::min(saturating_add(now, record.release_state().backoff), release_deadline);
    core_.timers.schedule(record, std::min(record.release_state().retry_at, record.lease_state().answer_by));
    record.notify(actions.wakes);
}

void cleanup_queue::keep_until_ended(const record& record)
{
    if (record.current_phase() == phase::ending && record.list_hook::is_linked() && !kept_)
        kept_ = core_.weak_from_this().lock();
}

bool cleanup_queue::is_inside_call(const record& record) const noexcept
{
    return core_.can.immediate && record.in_flight != operation::none;
}

unsigned cleanup_queue::calls_in_flight() const noexcept
{
    return static_cast<unsigned>(
        std::ranges::count_if(ending_, [this](const record& each) { return is_inside_call(each); }));
}

void cleanup_queue::give_up(deferred_actions& actions)
{
    for (auto next = ending_.begin(); next != ending_.end();) {
        record& unanswered = *next++;
        if (is_inside_call(unanswered))
            continue;
        unanswered.release_state().is_settling = true;
        core_.finish(unanswered, false, actions);
    }
}

const std::vector<std::string>& cleanup_queue::give_up_and_list_keys(deferred_actions& actions)
{
    for (const record& unanswered : ending_) {
        if (!is_inside_call(unanswered))
            given_up_keys_.push_back(unanswered.key());
    }
    give_up(actions);
    return given_up_keys_;
}

} // namespace colock::inline v0::detail
