// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/operation.hpp"

#include <colock/clock.hpp>
#include <colock/detail/single_thread.hpp>

#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <deque>
#include <mutex>

namespace colock::remote {

/// The operations of a client: those that wait to be started, and those whose answers are awaited. A hundred thousand
/// may end at one moment: then they are told in parts.
///
/// Thread safety: `add` and `empty` may be called from any thread; all else on the client's strand.
class operation_queue
{
public:
    operation_queue() = default;
    operation_queue(const operation_queue&) = delete;
    operation_queue& operator=(const operation_queue&) = delete;
    ~operation_queue() { drop_all(); }

    /// Adds an operation behind all that wait. Returns whether it is the only one, so that a handler that starts it has
    /// to be posted. After `drop_all` the operation is destroyed.
    bool add(operation_ptr which);
    /// Returns whether no operation waits to be started.
    [[nodiscard]] bool empty() const noexcept;
    [[nodiscard]] std::size_t waiting() const noexcept;
    [[nodiscard]] bool under_way() const noexcept { return !running_.empty(); }
    [[nodiscard]] std::size_t count_under_way() const noexcept { return running_count_; }
    /// Returns how many operations were under way by themselves since several last were at the same time.
    [[nodiscard]] unsigned alone_in_a_row() const noexcept { return alone_in_a_row_; }
    /// Returns whether operations were given up whose callers are still to be told.
    [[nodiscard]] bool owes_news() const noexcept { return !given_up_.empty(); }

    /// Returns the next operation that waits to be started; null if there is none.
    [[nodiscard]] const operation* first() const noexcept;
    /// Takes that operation out, to be started; null if there is none.
    [[nodiscard]] operation_ptr take();
    /// Puts an operation that was taken before all that wait.
    void put_back(operation& which);
    /// Removes an operation that has ended, or is about to.
    void ended(operation& which) noexcept;

    /// Moves every deadline.
    void postpone(lease_clock::duration by) noexcept;
    /// Gives up all operations that wait, or all that were started; `end_some` tells their callers. One that is
    /// answered before that ends with its answer.
    void give_up_waiting(const failure_ptr& why);
    void give_up_running(const failure_ptr& why);
    /// Ends some operations that were given up, whose deadline is over, or that wait and are not wanted any more.
    /// Returns whether there may be more, for which it is to be called again soon. After `false` the next call looks at
    /// all that wait once more.
    [[nodiscard]] bool end_some(lease_clock::time_point now, const failure_ptr& trouble);
    /// Destroys all operations without telling their callers. From now on none is added.
    void drop_all() noexcept;

private:
    /// The list owns a reference to each operation.
    using list = boost::intrusive::list<operation, boost::intrusive::constant_time_size<false>>;
    struct verdict
    {
        list on{};
        delivery how;
        failure_ptr why;
    };
    class budget;

    void give_up(list& all, delivery how, const failure_ptr& why);
    void end_given_up(budget& left);
    void end_overdue_running(budget& left, lease_clock::time_point now, const failure_ptr& trouble);
    void end_overdue_waiting(budget& left, lease_clock::time_point now, const failure_ptr& trouble);

    mutable colock::detail::light_mutex mutex_;
    list waiting_;
    std::size_t waiting_count_ = 0;
    /// The next operation that `end_some` looks at, if it has to be called again.
    list::iterator looked_at_ = waiting_.begin();
    bool looking_ = false;
    bool closed_ = false;

    list running_;
    std::size_t running_count_ = 0;
    unsigned alone_in_a_row_ = 0;
    /// Operations that were given up while they were under way belong to an earlier generation.
    unsigned generation_ = 0;
    std::deque<verdict> given_up_;
};

} // namespace colock::remote
