// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/work.hpp"

namespace colock::detail {

namespace {

/// So that a crowd that is due at once does not hold up the loop.
constexpr std::size_t due_in_a_row = 256;

} // namespace

void core::schedule(waitable& source, time_point due)
{
    if (source.due == due)
        return;
    if (source.due != time_point::max())
        timers_.erase(timers_.iterator_to(source));
    source.due = due;
    if (due != time_point::max())
        timers_.insert(source);
    arm_timer();
}

void core::arm_timer()
{
    if (dead_)
        return;
    if (timers_.empty()) {
        // An armed timer would keep io_context::run() from returning; while anybody waits, that is as it should be, and
        // the next one to wait need not arm it again.
        if (!queues_.empty())
            return;
        if (timer_ && armed_for_ != time_point::max())
            timer_->cancel();
        armed_for_ = time_point::max();
        return;
    }
    const time_point first = timers_.begin()->due;
    // A timer that fires early finds nothing due and is armed again: cheaper than moving it each time.
    if (first >= armed_for_)
        return;
    if (!timer_)
        timer_.emplace(backend_->executor());
    // Not armed while it is being armed: without memory for the wait, the next one tries again.
    armed_for_ = time_point::max();
    timer_->expires_at(first);
    timer_->async_wait([weak = weak_from_this()](const error_code& failed) {
        if (failed)
            return;
        if (const auto self = weak.lock())
            self->on_timer();
    });
    armed_for_ = first;
}

void core::on_timer()
{
    work todo;
    {
        const std::lock_guard guard(mutex_);
        armed_for_ = time_point::max();
        const auto now = lease_clock::now();
        for (std::size_t n = 0; n < due_in_a_row && !timers_.empty() && timers_.begin()->due <= now; ++n) {
            waitable& due = *timers_.begin();
            timers_.erase(timers_.begin());
            due.due = time_point::max();
            on_due(due, now, todo);
        }
        arm_timer();
    }
    todo.run(*this);
}

void core::on_due(waitable& due, time_point now, work& todo)
{
    if (due.only_wakes) {
        due.notify(todo.wakes);
        return;
    }
    auto& subject = static_cast<record&>(due);
    switch (subject.where()) {
    case phase::acquiring:
        subject.notify(todo.wakes);
        return;
    case phase::held:
        if (!follow_plan(subject, now, todo))
            return;
        break;
    case phase::ending:
        if (now >= subject.retry_at) {
            subject.retry_at = time_point::max();
            give_back(subject, todo);
        }
        break;
    case phase::ending_unwatched:
    case phase::ended:
        return;
    }
    if (now >= subject.answer_by) {
        subject.answer_by = time_point::max();
        subject.notify(todo.wakes);
    }
    if (subject.where() == phase::held)
        reschedule_held(subject);
    else if (subject.where() == phase::ending)
        schedule(subject, std::min(subject.retry_at, subject.answer_by));
}

} // namespace colock::detail
