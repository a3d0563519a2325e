// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/event_dispatcher.hpp"

#include <colock/observer.hpp>

#include "core/state/possible_deadlock.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>

namespace colock::inline v0::detail {

namespace {

void report(observer& listener, const lock_event& event)
{
    using kind = lock_event::kind;
    const lock_record::ptr& record = event.record;
    const std::string& key = record->key();
    switch (event.type) {
    case kind::waiting:
        return listener.waiting(key);
    case kind::possible_deadlock:
        return listener.possible_deadlock(key, event.span, place_of(*record), event.waiting_at);
    case kind::granted:
        listener.granted(key, record->lease_state().fence, event.span);
        if (record->is_leadership)
            listener.elected(key, record->lease_state().fence);
        return;
    case kind::not_granted:
        return listener.not_granted(key, event.error, event.span);
    case kind::renewed:
        return listener.renewed(key, event.span);
    case kind::at_risk:
        return listener.at_risk(key, event.error);
    case kind::lost:
        listener.lost(key, event.reason, event.span);
        if (record->is_leadership && event.reason == lost_reason::shutting_down)
            listener.resigned(key, record->lease_state().fence);
        else if (record->is_leadership)
            listener.deposed(key, record->lease_state().fence, event.reason);
        return;
    case kind::released:
        return listener.released(key, event.span);
    case kind::resigned:
        return listener.resigned(key, record->lease_state().fence);
    case kind::settled:
        return listener.settled(key, event.proven);
    }
}

/// Number of observer functions, of all lockers, that the current thread is inside of.
thread_local std::size_t observer_depth = 0;

} // namespace

void event_dispatcher::take(batch& due) noexcept
{
    const auto count = std::min(due.capacity(), pending_count());
    for (std::size_t n = 0; n < count; ++n)
        due.push_back(std::move(pending_[first_++]));
    // Erases the events that were taken only if they are many, so that each event is moved a bounded number of times.
    if (first_ == pending_.size() || first_ > std::max(max_backlog, pending_.size() / 2)) {
        pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(first_));
        first_ = 0;
    }
}

bool event_dispatcher::report_batch(observer& listener)
{
    batch due;
    {
        std::unique_lock guard(mutex_);
        while (is_reporting_) {
            if (pending_count() <= max_backlog || observer_depth > 0)
                return false;
            ++waiting_count_;
            batch_ended_.wait(guard);
            --waiting_count_;
        }
        if (pending_count() == 0)
            return false;
        take(due);
        is_reporting_ = true;
    }
    ++observer_depth;
    for (const auto& each : due)
        report(listener, each);
    // May destroy records and objects that they own, so the mutex must not be held. Their destructors are foreign code,
    // too, and may cause events.
    due.clear();
    --observer_depth;
    const std::lock_guard guard(mutex_);
    is_reporting_ = false;
    if (waiting_count_ > 0)
        batch_ended_.notify_all();
    return pending_count() > 0;
}

bool event_dispatcher::begin_post()
{
    const std::lock_guard guard(mutex_);
    return !std::exchange(is_posted_, true);
}

void event_dispatcher::end_post()
{
    const std::lock_guard guard(mutex_);
    is_posted_ = false;
}

} // namespace colock::inline v0::detail
