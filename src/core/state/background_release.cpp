// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/background_release.hpp"

#include "core/state/core.hpp"

namespace colock::detail {

namespace {

/// While the backend was asked, another thread has come to wait for the end of this record; or the backend has not
/// answered as was expected.
bool end_watched_release(core& self, record& ending, release_outcome&& outcome)
{
    const bool failed = outcome.status == release_status::failed;
    deferred_actions actions;
    {
        const std::lock_guard guard(self.mutex);
        add_to(self.quick_releases_ended, 1U);
        ending.back().answered = !failed;
        ending.back().status = outcome.status;
        if (failed) {
            --self.stats.releases;
            ending.move_to(phase::ending);
            cleanup_queue::may_stand(ending, ending.ttl());
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
        self.on_given_back(ending, std::move(outcome));
    return !failed;
}

/// The mutex is held.
bool watch_for_answer(core& self, record& ending, std::uint32_t& seen)
{
    ending.watch_end();
    if (ending.where() == phase::ended || ending.back().answered)
        return false;
    seen = ending.version;
    const bool first_look = ending.back().answer_deadline == lease_clock::time_point::max();
    const bool just_sent =
        ending.under_way == operation::give_back && ending.back().retry_at == lease_clock::time_point::max();
    if (first_look && just_sent && self.adapter_keeps_time())
        return true;
    const auto now = lease_clock::now();
    if (first_look)
        ending.back().answer_deadline = saturating_add(now, self.options.operation_timeout);
    if (now >= ending.back().answer_deadline)
        return false;
    ending.answer_by = std::min(ending.answer_by, ending.back().answer_deadline);
    self.timers.schedule(ending, std::min(ending.back().retry_at, ending.answer_by));
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
        if (subject.where() != phase::held || subject.incomplete || subject.under_way != operation::none ||
            subject.in_doubt() || !subject.waiters.empty() || subject.due != lease_clock::time_point::max() ||
            self.options.observer || (self.queues.may_have(subject.key_hash()) && self.queues.find(subject)) ||
            self.closed_to_new.load(std::memory_order_relaxed))
            return false;
        self.leases.take_out(subject);
        subject.end_reason = lost_reason::released;
        // Somebody may have looked, and be about to park.
        subject.touch();
        // What is expected, so that the mutex need not be taken again where it comes so. It is read by those only who
        // see the end.
        subject.back().answered = true;
        ++self.stats.releases;
        ++self.quick_releases_begun;
        subject.move_to(phase::ending_unwatched);
    }
    std::optional<release_outcome> outcome;
    self.backend->start_release(held, completion<release_outcome>::into(outcome));
    if (outcome->status == release_status::released && subject.end_unwatched()) {
        add_to(self.quick_releases_ended, 1U);
        // A shutdown closes before it looks for releases: it sees that there is none, or this sees that it is closed.
        if (self.closed_to_new.load())
            self.tell_drained();
        return true;
    }
    return end_watched_release(self, subject, std::move(*outcome));
}

bool must_await_answer(core& self, record& ending, std::uint32_t& seen)
{
    if (ending.where() == phase::ended)
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
        begun.was_held = held.where() == phase::held;
        if (begun.was_held)
            self.leases.begin_end(held, lost_reason::released, actions);
        begun.waits = seen && !self.can.immediate && watch_for_answer(self, held, *seen);
    }
    actions.run(self);
    if (seen && self.can.immediate)
        begun.waits = must_await_answer(self, held, *seen);
    return begun;
}

void release_in_background(core& self, record& held) noexcept
{
    if (held.where() == phase::held && !release_at_once(self, record::ptr(&held)))
        begin_release(self, held);
    if (held.where() != phase::ending)
        return;
    const std::lock_guard guard(self.mutex);
    self.cleanup.keep_until_ended(held);
}

void abandon_acquire(core& self, const record::ptr& wanted) noexcept
{
    record& subject = *wanted;
    subject.cancel();
    {
        deferred_actions actions;
        {
            const std::lock_guard guard(self.mutex);
            self.queues.leave(subject, actions.wakes);
            if (subject.where() == phase::acquiring) {
                self.stop_trying(subject);
                if (subject.acquire.stops_waiting() && !subject.incomplete)
                    --self.stats.waiting;
                subject.incomplete = nullptr;
                if (subject.acquire.stops_listening())
                    actions.ask(deferred_actions::action::cancel_wait, subject);
                self.timers.schedule(subject, lease_clock::time_point::max());
                if ((subject.under_way == operation::none && !subject.left_trace) || subject.is_from_parent()) {
                    subject.move_to(phase::ended);
                } else {
                    subject.has_acquired();
                    subject.back().settles = true;
                    cleanup_queue::may_stand(subject, subject.ttl());
                    subject.move_to(phase::ending);
                    self.cleanup.enter(subject);
                    self.cleanup.give_back(subject, actions);
                }
            }
        }
        actions.run(self);
    }
    release_in_background(self, subject);
}

} // namespace colock::detail
