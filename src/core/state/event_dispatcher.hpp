// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/single_thread.hpp>

#include "core/state/record.hpp"

#include <boost/container/small_vector.hpp>

#include <chrono>
#include <new>
#include <utility>

namespace colock {
class observer;
}

namespace colock::detail {

/// An event of one lock, of which the locker's observer is told.
struct lock_event
{
    enum class kind : unsigned char
    {
        waiting,
        granted,
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
};

/// Tells the observer of events in the order in which they were added, one at a time. A thread that finds another one
/// telling leaves its events to that thread; so does a call that is made inside the observer.
class event_dispatcher
{
public:
    explicit event_dispatcher(light_mutex& mutex) : mutex_(mutex) {}
    event_dispatcher(const event_dispatcher&) = delete;
    event_dispatcher& operator=(const event_dispatcher&) = delete;

    /// The mutex is held. Without memory the event is dropped: docs/guide.md says so.
    void add(lock_event&& next) noexcept
    {
        try {
            pending_.push_back(std::move(next));
        } catch (const std::bad_alloc&) {
        }
    }
    /// Tells `listener` what is pending. Not under the mutex.
    void run(observer& listener);
    /// In the child of a fork: the thread that was telling is the parent's. The mutex is held.
    void forked() noexcept { is_telling_ = false; }

private:
    using event_list = boost::container::small_vector<lock_event, 1>;

    light_mutex& mutex_;
    event_list pending_;
    bool is_telling_ = false;
};

} // namespace colock::detail
