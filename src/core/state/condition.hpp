// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include "core/state/suspended_handler.hpp"
#include "core/state/wake_list.hpp"

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include <cstdint>

namespace colock::inline v0::detail {

struct timer_tag;

/// Something that coroutines wait on, with an optional due time. Guarded by the mutex of the core.
///
/// Works like a condition variable. A coroutine reads `version`, checks the state, and is suspended unless the version
/// has changed since. Every change increments the version and resumes all that wait.
class condition
    : public boost::intrusive::set_base_hook<boost::intrusive::tag<timer_tag>, boost::intrusive::optimize_size<true>>
{
public:
    using time_point = lease_clock::time_point;

    condition() = default;

    /// A value for `seen` that no condition has: the wait ends at once, by a post, so that other handlers run.
    static constexpr std::uint32_t outdated = 0xffffffff;

    /// The handlers that wait for the next change.
    boost::intrusive::list<suspended_handler, boost::intrusive::base_hook<suspended_handler::condition_hook>,
        boost::intrusive::constant_time_size<false>>
        suspended;
    /// Number of changes so far.
    std::uint32_t version = 0;
    /// Whether this is a lock_record, whose due time may require a request. Any other due time only notifies.
    const bool is_record = false;
    /// Due time in the timer queue; max: not in the queue.
    time_point due = time_point::max();

    /// Records a change, and adds all handlers that wait for one to `wakes`.
    void notify(wake_list& wakes)
    {
        // Never equal to `outdated`.
        version = (version + 1) & 0x7fffffff;
        while (!suspended.empty())
            wakes.add(suspended.front());
    }

    friend bool operator<(const condition& left, const condition& right) noexcept { return left.due < right.due; }

protected:
    explicit condition(bool is_record) : is_record(is_record) {}
};

} // namespace colock::inline v0::detail
