// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/operation.hpp"

#include <colock/clock.hpp>
#include <colock/detail/single_thread.hpp>

#include <boost/intrusive/list.hpp>

#include <deque>
#include <mutex>

namespace colock::zookeeper::detail {

/// The operations of a client: those that wait to be started, and those whose answers are awaited.
///
/// Thread safety: `add` and `empty` may be called from any thread; all else on the client's strand.
class errands
{
public:
    errands() = default;
    errands(const errands&) = delete;
    errands& operator=(const errands&) = delete;
    ~errands() { drop_all(); }

    /// True if no other waits: nobody has been asked to start it. Dropped once all were.
    bool add(operation_ptr which);
    /// Whether none waits.
    [[nodiscard]] bool empty() const noexcept;
    [[nodiscard]] bool under_way() const noexcept { return !running_.empty(); }

    /// The next, to be started; null: there is none.
    [[nodiscard]] operation_ptr take();
    /// Before all that waits.
    void put_back(operation& which);
    /// It has ended, or is about to.
    void ended(operation& which) noexcept;

    /// Moves every deadline.
    void postpone(lease_clock::duration by) noexcept;
    /// Those whose time is over, and those that wait and are not wanted any more, end.
    void end_overdue(lease_clock::time_point now, const failure_ptr& trouble);
    /// All that waits.
    void fail_waiting(const failure_ptr& why);
    void fail_running(const failure_ptr& why);
    /// Nobody is told; and from now on nothing is taken in.
    void drop_all() noexcept;

private:
    using list = boost::intrusive::list<operation>;

    mutable colock::detail::light_mutex mutex_;
    std::deque<operation_ptr> waiting_;
    bool closed_ = false;
    /// Holds a reference to each.
    list running_;
};

} // namespace colock::zookeeper::detail
