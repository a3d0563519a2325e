// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/single_thread.hpp>

#include "core/state/lock_record.hpp"

#include <boost/container/small_vector.hpp>
#include <boost/container/static_vector.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
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
        /// `record` is the lock that is held, and `waiting_at` belongs to the acquire that waits for it.
        possible_deadlock,
        granted,
        not_granted,
        renewed,
        at_risk,
        lost,
        released,
        resigned,
        settled,
    };

    kind type;
    lock_record::ptr record;
    lost_reason reason = lost_reason::released;
    bool proven = true;
    std::chrono::nanoseconds span{0};
    error_code error{};
    std::source_location waiting_at{};
};

/// The events of one locker that have not been reported yet. One thread at a time reports them, in the order in which
/// they were added, and at most `max_events_per_batch` of them, so that no thread works for others without bound.
class event_dispatcher
{
public:
    /// Maximum number of events that a thread reports before it does other work.
    static constexpr std::size_t max_events_per_batch = 64;
    /// Number of pending events above which a thread waits until it can report a batch itself. Otherwise threads that
    /// cause events faster than the observer takes them would let the queue grow without bound.
    static constexpr std::size_t max_backlog = 1000;

    explicit event_dispatcher(light_mutex& mutex) : mutex_(mutex) {}
    event_dispatcher(const event_dispatcher&) = delete;
    event_dispatcher& operator=(const event_dispatcher&) = delete;

    /// Adds an event. If there is no memory, the event is dropped, as documented in docs/guide-waiting.md. The mutex
    /// must be held.
    void add(lock_event&& next) noexcept
    {
        try {
            pending_.push_back(std::move(next));
        } catch (const std::bad_alloc&) {
        }
    }
    /// Reports one batch to `listener`. If another thread is reporting, leaves the events to that thread, or waits for
    /// the end of its batch if the backlog is too long. A thread that is inside a function of any observer never waits,
    /// because the other thread may be waiting for it. The mutex must not be held.
    /// \returns whether events are left that nobody is reporting
    [[nodiscard]] bool report_batch(observer& listener);
    /// Returns true if the caller has to post the next batch, and false if that has been done already. The mutex must
    /// not be held.
    [[nodiscard]] bool begin_post();
    /// Called when the posted batch begins, or could not be posted. The mutex must not be held.
    void end_post();

private:
    using batch = boost::container::static_vector<lock_event, max_events_per_batch>;

    [[nodiscard]] std::size_t pending_count() const noexcept { return pending_.size() - first_; }
    void take(batch& due) noexcept;

    light_mutex& mutex_;
    /// The events from `first_` on are pending.
    boost::container::small_vector<lock_event, 1> pending_;
    std::size_t first_ = 0;
    bool is_reporting_ = false;
    bool is_posted_ = false;
    /// Number of threads that wait for `batch_ended_`.
    std::size_t waiting_count_ = 0;
    std::condition_variable_any batch_ended_;
};

} // namespace colock::inline v0::detail
