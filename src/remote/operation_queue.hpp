// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/operation.hpp"

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

    /// True if no other waits: nobody has been asked to start it. Dropped once all were.
    bool add(operation_ptr which);
    /// Whether none waits.
    [[nodiscard]] bool empty() const noexcept;
    [[nodiscard]] std::size_t waiting() const noexcept;
    [[nodiscard]] bool under_way() const noexcept { return !running_.empty(); }
    [[nodiscard]] std::size_t count_under_way() const noexcept { return running_count_; }
    /// How many were under way by themselves, since several last were at the same time.
    [[nodiscard]] unsigned alone_in_a_row() const noexcept { return alone_in_a_row_; }
    /// Some were given up, and are still to be told.
    [[nodiscard]] bool owes_news() const noexcept { return !given_up_.empty(); }

    /// The next, which still waits; null: there is none.
    [[nodiscard]] const operation* first() const noexcept;
    /// That one, to be started.
    [[nodiscard]] operation_ptr take();
    /// Before all that waits.
    void put_back(operation& which);
    /// It has ended, or is about to.
    void ended(operation& which) noexcept;

    /// Moves every deadline.
    void postpone(lease_clock::duration by) noexcept;
    /// All that waits, or was started, is to be told by `end_some`. What is answered before that has its answer.
    void give_up_waiting(const failure_ptr& why);
    void give_up_running(const failure_ptr& why);
    /// Ends some of those that were given up, whose time is over, or that wait and are not wanted any more. True: there
    /// may be more, it is to be called again soon. Else the next call begins to look anew.
    [[nodiscard]] bool end_some(lease_clock::time_point now, const failure_ptr& trouble);
    /// Nobody is told; and from now on nothing is taken in.
    void drop_all() noexcept;

private:
    /// Holds a reference to each.
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
    /// Where the look at those goes on, if one is under way.
    list::iterator looked_at_ = waiting_.begin();
    bool looking_ = false;
    bool closed_ = false;

    list running_;
    std::size_t running_count_ = 0;
    unsigned alone_in_a_row_ = 0;
    /// Those that were given up while they were under way belong to an earlier one.
    unsigned generation_ = 0;
    std::deque<verdict> given_up_;
};

} // namespace colock::remote
