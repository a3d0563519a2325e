// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/timer_queue.hpp"

#include <boost/asio/post.hpp>

#include <new>
#include <utility>

namespace colock::inline v0::detail {

void timer_queue::move(condition& source, time_point due) noexcept
{
    if (source.due != time_point::max())
        due_.erase(due_.iterator_to(source));
    source.due = due;
    if (due != time_point::max())
        due_.insert(source);
}

void timer_queue::schedule(condition& source, time_point due) noexcept
{
    if (source.due == due)
        return;
    move(source, due);
    arm();
}

void timer_queue::schedule_wait(condition& source, time_point due)
{
    if (source.due == due)
        return;
    move(source, due);
    arm_or_throw();
}

void timer_queue::keep_armed(bool keep) noexcept
{
    keeps_armed_ = keep;
    if (!keep)
        arm();
}

condition* timer_queue::take_due(time_point now)
{
    if (due_.empty() || due_.begin()->due > now)
        return nullptr;
    condition& first = *due_.begin();
    move(first, time_point::max());
    return &first;
}

void timer_queue::arm() noexcept
{
    try {
        arm_or_throw();
    } catch (const std::bad_alloc&) {
        // The timer counts as not armed, so the next call tries again.
    }
}

void timer_queue::arm_or_throw()
{
    if (stopped_)
        return;
    if (due_.empty()) {
        if (is_immediate_)
            disarm_soon();
        else
            disarm_if_unused();
        return;
    }
    const time_point first = due_.begin()->due;
    // A timer that fires early finds nothing due and is armed again. This is cheaper than moving it each time.
    if (first >= armed_for_)
        return;
    if (!timer_) {
        // The executor is empty while the context shuts down, so nothing becomes due any more.
        const auto executor = backend_.executor();
        if (!executor)
            return;
        timer_.emplace(executor);
    }
    // While it is being armed, the timer counts as not armed: if there is no memory for the wait, the next call tries
    // again.
    armed_for_ = time_point::max();
    timer_->expires_at(first);
    timer_->async_wait([owner = owner_, on_fired = on_fired_](const error_code& failed) {
        if (failed)
            return;
        if (const auto alive = owner.lock())
            on_fired(alive.get());
    });
    armed_for_ = first;
}

/// Cancels an unused timer in a posted handler. To cancel a timer and to arm it again costs a microsecond and two
/// system calls. A program that takes one lock after the other from a backend that answers at once avoids both, because
/// it stays in one handler. With any other backend, the next lock takes a round trip, so the posted handler would
/// still find nothing scheduled.
void timer_queue::disarm_soon()
{
    if (keeps_armed_ || armed_for_ == time_point::max() || std::exchange(is_disarming_, true))
        return;
    try {
        asio::post(timer_->get_executor(), [owner = owner_, on_unused = on_unused_] {
            if (const auto alive = owner.lock())
                on_unused(alive.get());
        });
    } catch (...) {
        // There is no memory to post the handler.
        disarm_if_unused();
    }
}

void timer_queue::disarm_if_unused()
{
    is_disarming_ = false;
    if (!timer_ || !due_.empty() || keeps_armed_ || armed_for_ == time_point::max())
        return;
    armed_for_ = time_point::max();
    timer_->cancel();
}

std::optional<lease_timer> timer_queue::stop() noexcept
{
    stopped_ = true;
    while (!due_.empty())
        move(*due_.begin(), time_point::max());
    return std::exchange(timer_, std::nullopt);
}

} // namespace colock::inline v0::detail
