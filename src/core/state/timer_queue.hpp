// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>

#include "core/state/condition.hpp"

#include <boost/intrusive/set.hpp>

#include <memory>
#include <optional>

namespace colock::inline v0::detail {

/// Orders conditions by due time, and runs the one timer for the first of them.
///
/// Thread safety: none; guarded by the mutex of the core.
class timer_queue
{
public:
    using time_point = lease_clock::time_point;

    /// \param backend the timer runs on its executor
    explicit timer_queue(const adapter& backend)
        : backend_(backend), is_immediate_(backend.traits().capabilities.immediate)
    {
    }
    timer_queue(const timer_queue&) = delete;
    timer_queue& operator=(const timer_queue&) = delete;

    /// Sets the owner that the timer calls on the executor. The reference is weak, so that an armed timer keeps nothing
    /// alive.
    /// \tparam Fired member function, called when something is due
    /// \tparam Unused member function, called some time after the last condition was removed; must call
    ///     `disarm_if_unused`
    template <auto Fired, auto Unused, class Owner>
    void set_owner(const std::shared_ptr<Owner>& owner)
    {
        owner_ = owner;
        on_fired_ = [](void* target) { (static_cast<Owner*>(target)->*Fired)(); };
        on_unused_ = [](void* target) { (static_cast<Owner*>(target)->*Unused)(); };
    }

    /// Sets when `source` is due; `time_point::max()` removes it. If there is no memory to arm the timer, the next call
    /// tries again; see docs/guide-waiting.md.
    void schedule(condition& source, time_point due) noexcept;
    /// Schedules a condition for a caller that is about to wait.
    /// \throws std::bad_alloc There is no memory to arm the timer. `source` is scheduled nevertheless.
    void schedule_wait(condition& source, time_point due);
    /// Sets whether the timer stays armed when nothing is scheduled. Used while there are waiters: io_context::run()
    /// must not return then, and the next waiter need not arm the timer again.
    void keep_armed(bool keep) noexcept;

    /// Must be called by the owner when a wait of the timer has ended. The owner then takes the due conditions, and
    /// arms the timer again.
    void mark_fired(time_point now) noexcept
    {
        // The timer may have been armed again, for a later time, while its handler was queued.
        if (armed_for_ <= now)
            armed_for_ = time_point::max();
    }
    /// Removes and returns the next condition that is due; null if there is none.
    [[nodiscard]] condition* take_due(time_point now);
    /// If there is no memory to arm the timer, the next call tries again.
    void arm() noexcept;
    /// Cancels the timer if nothing is scheduled.
    void disarm_if_unused();

    /// Removes all conditions permanently, and returns the timer, which must be destroyed without the mutex.
    [[nodiscard]] std::optional<lease_timer> stop() noexcept;

private:
    using due_set = boost::intrusive::multiset<condition,
        boost::intrusive::base_hook<
            boost::intrusive::set_base_hook<boost::intrusive::tag<timer_tag>, boost::intrusive::optimize_size<true>>>>;

    /// Changes when `source` is due, without arming the timer.
    void move(condition& source, time_point due) noexcept;
    /// \throws std::bad_alloc
    void arm_or_throw();
    void disarm_soon();

    const adapter& backend_;
    const bool is_immediate_;
    std::weak_ptr<void> owner_;
    void (*on_fired_)(void*) = nullptr;
    void (*on_unused_)(void*) = nullptr;
    due_set due_;
    std::optional<lease_timer> timer_;
    time_point armed_for_ = time_point::max();
    bool keeps_armed_ = false;
    /// A call of `disarm_if_unused` has been posted.
    bool is_disarming_ = false;
    bool stopped_ = false;
};

} // namespace colock::inline v0::detail
