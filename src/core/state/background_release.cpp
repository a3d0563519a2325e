// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/background_release.hpp"

#include "core/state/core.hpp"

#include <new>
#include <optional>
#include <utility>

namespace colock::inline v0::detail {

namespace {

/// Ends a quick release under the mutex, because another thread has begun to wait for the end of the record, or because
/// the release has failed.
bool end_watched_release(core& self, record& ending, release_outcome&& outcome)
{
    const bool failed = outcome.status == release_status::failed;
    deferred_actions actions;
    {
        const std::lock_guard guard(self.mutex);
        add_to(self.quick_releases_ended, 1U);
        ending.release_state().answered = !failed;
        ending.release_state().status = outcome.status;
        if (failed) {
            ending.move_to(phase::ending);
            cleanup_queue::note_request(ending, ending.ttl());
            self.cleanup.enter(ending);
        } else {
            self.timers.schedule(ending, lease_clock::time_point::max());
            ending.move_to(phase::ended);
            ending.notify(actions.wakes);
            self.cleanup.drained().notify(actions.wakes);
        }
    }
    actions.run(self);
    if (failed)
        self.on_released(ending, std::move(outcome));
    return !failed;
}

/// Returns whether the answer to the release has to be awaited, and stores in `seen` the version at which there was no
/// answer. From now on, a quick release notifies its waiters. The mutex must be held.
bool watch_for_answer(core& self, record& ending, std::uint32_t& seen)
{
    ending.watch_end();
    if (ending.current_phase() == phase::ended || ending.release_state().answered)
        return false;
    seen = ending.version;
    const bool is_first_check = ending.release_state().answer_deadline == lease_clock::time_point::max();
    const bool just_sent =
        ending.in_flight == operation::release && ending.release_state().retry_at == lease_clock::time_point::max();
    if (is_first_check && just_sent && self.adapter_ends_in_time())
        return true;
    const auto now = lease_clock::now();
    if (is_first_check)
        ending.release_state().answer_deadline = saturating_add(now, self.options.operation_timeout);
    if (now >= ending.release_state().answer_deadline)
        return false;
    ending.answer_by = std::min(ending.answer_by, ending.release_state().answer_deadline);
    self.timers.schedule(ending, std::min(ending.release_state().retry_at, ending.answer_by));
    return true;
}

} // namespace

bool release_at_once(core& self, const record::ptr& held)
{
    record& subject = *held;
    if (!self.can.immediate)
        return false;
    {
        const std::lock_guard guard(self.mutex);
        if (subject.current_phase() != phase::held || subject.group_in_progress ||
            subject.in_flight != operation::none || subject.in_doubt() || !subject.waiters.empty() ||
            !subject.end_listeners.empty() || subject.due != lease_clock::time_point::max() || self.options.observer ||
            (self.queues.may_have(subject.key_hash()) && self.queues.find(subject)) ||
            self.closed_to_new.load(std::memory_order_relaxed))
            return false;
        self.leases.remove(subject);
        subject.end_reason = lost_reason::released;
        // Another thread may have checked the state, and be about to suspend.
        subject.touch();
        // Stores the expected answer now, so that the mutex need not be taken again if the answer is as expected. Only
        // a thread that sees the end of the record reads the answer.
        subject.release_state().answered = true;
        ++self.stats.releases;
        ++self.quick_releases_begun;
        subject.move_to(phase::ending_unwatched);
    }
    std::optional<release_outcome> outcome;
    try {
        self.backend->start_release(held, completion<release_outcome>::into(outcome));
    } catch (const std::bad_alloc&) {
        if (!outcome)
            outcome = {.status = release_status::failed, .error = self.no_memory};
    }
    if (outcome->status == release_status::released && subject.end_unwatched()) {
        add_to(self.quick_releases_ended, 1U);
        // A shutdown sets `closed_to_new` before it counts the releases. Either it finds that none is in flight, or
        // this thread sees the flag.
        if (self.closed_to_new.load())
            self.notify_drained();
        return true;
    }
    return end_watched_release(self, subject, std::move(*outcome));
}

bool must_await_answer(core& self, record& ending, std::uint32_t& seen)
{
    if (ending.current_phase() == phase::ended)
        return false;
    const std::lock_guard guard(self.mutex);
    return watch_for_answer(self, ending, seen);
}

release_start begin_release(core& self, record& held, std::uint32_t* seen)
{
    release_start begun;
    deferred_actions actions;
    {
        const std::lock_guard guard(self.mutex);
        begun.was_held = held.current_phase() == phase::held;
        if (begun.was_held)
            self.leases.end_lease(held, lost_reason::released, actions);
        begun.waits = seen && !self.can.immediate && watch_for_answer(self, held, *seen);
    }
    actions.run(self);
    if (seen && self.can.immediate)
        begun.waits = must_await_answer(self, held, *seen);
    return begun;
}

void release_in_background(core& self, record& held) noexcept
{
    if (held.current_phase() == phase::held && !release_at_once(self, record::ptr(&held)))
        begin_release(self, held);
    if (held.current_phase() != phase::ending)
        return;
    const std::lock_guard guard(self.mutex);
    self.cleanup.keep_until_ended(held);
}

} // namespace colock::inline v0::detail
