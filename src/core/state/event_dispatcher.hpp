// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/single_thread.hpp>

#include "core/state/record.hpp"

#include <boost/container/small_vector.hpp>

#include <chrono>
#include <new>
#include <source_location>
#include <utility>

namespace colock::inline v0 {
class observer;
}

namespace colock::inline v0::detail {

/// An event of one lock, to be reported to the locker's observer.
struct lock_event
{
    enum class kind : unsigned char
    {
        waiting,
        /// The subject is the holder, and `waiting_at` belongs to the acquire that waits.
        possible_deadlock,
        granted,
        not_granted,
        renewed,
        at_risk,
        lost,
        released,
        settled,
    };

    kind what;
    record::ptr subject;
    lost_reason reason = lost_reason::released;
    bool proven = true;
    std::chrono::nanoseconds span{0};
    error_code why{};
    std::source_location waiting_at{};
};

/// Reports events to the observer in the order in which they were added, one at a time. If another thread is reporting,
/// or the call is made inside the observer, the events are left to the thread that is reporting.
class event_dispatcher
{
public:
    explicit event_dispatcher(light_mutex& mutex) : mutex_(mutex) {}
    event_dispatcher(const event_dispatcher&) = delete;
    event_dispatcher& operator=(const event_dispatcher&) = delete;

    /// Adds an event. If there is no memory, the event is dropped, as documented in docs/guide.md. The mutex must be
    /// held.
    void add(lock_event&& next) noexcept
    {
        try {
            pending_.push_back(std::move(next));
        } catch (const std::bad_alloc&) {
        }
    }
    /// Reports the pending events to `listener`. The mutex must not be held.
    void run(observer& listener);
    /// Called in the child of a fork, where the reporting thread does not exist. The mutex must be held.
    void forked() noexcept { is_reporting_ = false; }

private:
    using event_list = boost::container::small_vector<lock_event, 1>;

    light_mutex& mutex_;
    event_list pending_;
    bool is_reporting_ = false;
};

} // namespace colock::inline v0::detail
