// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/core.hpp"

namespace colock::detail {

/// The quiet release of a lock that nobody waits for, on a backend that answers at once. False if it has to go the long
/// way, or has to be tried again.
bool core::release_at_once(const record_ptr& held)
{
    record& subject = *held;
    if (!can_.immediate)
        return false;
    {
        const std::lock_guard guard(mutex_);
        if (subject.where() != phase::held || subject.under_way != operation::none || subject.tainted() ||
            !subject.waiters.empty() || subject.due != time_point::max() || options_.observer ||
            (queues_.may_have(subject.key_hash()) && queues_.find(subject)) ||
            closed_to_new_.load(std::memory_order_relaxed))
            return false;
        leases_.take_out(subject);
        subject.end_reason = lost_reason::released;
        // Somebody may have looked, and be about to park.
        subject.touch();
        // What is expected, so that the mutex need not be taken again where it comes so. It is read by those only who
        // see the end.
        subject.answered = true;
        ++stats_.releases;
        ++quick_releases_begun_;
        subject.move_to(phase::ending_unwatched);
    }
    std::optional<release_outcome> outcome;
    backend_->start_release(held, completion<release_outcome>::into(outcome));
    if (outcome->status == release_status::released && subject.end_unwatched()) {
        add_to(quick_releases_ended_, 1U);
        // A shutdown closes before it looks for releases: it sees that there is none, or this sees that it is closed.
        if (closed_to_new_.load())
            tell_drained();
        return true;
    }
    return end_watched_release(subject, std::move(*outcome));
}

/// While the backend was asked, another thread has come to wait for the end of this record; or the backend has not
/// answered as was expected.
bool core::end_watched_release(record& ending, release_outcome&& outcome)
{
    const bool failed = outcome.status == release_status::failed;
    work todo;
    {
        const std::lock_guard guard(mutex_);
        add_to(quick_releases_ended_, 1U);
        ending.answered = !failed;
        ending.answer.status = outcome.status;
        if (failed) {
            --stats_.releases;
            ending.move_to(phase::ending);
            settler::may_stand(ending, ending.ttl());
            settler_.enter(ending);
        } else {
            timers_.schedule(ending, time_point::max());
            ending.move_to(phase::ended);
            ending.notify(todo.wakes);
            settler_.drained().notify(todo.wakes);
        }
    }
    todo.run(*this);
    if (failed)
        on_given_back(ending, std::move(outcome));
    return !failed;
}

void core::tell_drained()
{
    work todo;
    {
        const std::lock_guard guard(mutex_);
        settler_.drained().notify(todo.wakes);
    }
    todo.run(*this);
}

bool core::begin_release(record& held, std::uint32_t* seen)
{
    bool waits = false;
    work todo;
    {
        const std::lock_guard guard(mutex_);
        if (held.where() == phase::held)
            leases_.begin_end(held, lost_reason::released, todo);
        waits = seen && !can_.immediate && is_unanswered(held, *seen);
    }
    todo.run(*this);
    return seen && can_.immediate ? await_answer(held, *seen) : waits;
}

void core::let_go(record& held) noexcept
{
    if (held.where() == phase::held && !release_at_once(record_ptr(&held)))
        begin_release(held);
    if (held.where() != phase::ending)
        return;
    const std::lock_guard guard(mutex_);
    settler_.keep_until_ended(held);
}

void core::depart(const record_ptr& wanted) noexcept
{
    record& subject = *wanted;
    subject.cancel();
    {
        work todo;
        {
            const std::lock_guard guard(mutex_);
            queues_.leave(subject, todo.wakes);
            if (subject.where() == phase::acquiring) {
                stop_trying(subject);
                if (subject.attempting.stops_waiting())
                    --stats_.waiting;
                if (subject.attempting.stops_listening())
                    todo.ask(work::action::cancel_wait, subject);
                timers_.schedule(subject, time_point::max());
                if ((subject.under_way == operation::none && !subject.left_trace) || subject.inherited()) {
                    subject.move_to(phase::ended);
                } else {
                    subject.settles = true;
                    settler::may_stand(subject, subject.ttl());
                    subject.move_to(phase::ending);
                    settler_.enter(subject);
                    settler_.give_back(subject, todo);
                }
            }
        }
        todo.run(*this);
    }
    let_go(subject);
}

} // namespace colock::detail
