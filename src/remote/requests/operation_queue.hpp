// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/operation.hpp"

#include <colock/clock.hpp>
#include <colock/detail/single_thread.hpp>

#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

namespace colock::inline v0::remote {

/// The operations of a client: the operations that wait to be started, and the operations that wait for an answer. A
/// hundred thousand operations may end at the same moment; they are then ended in several handlers.
///
/// Thread safety: `add` and `empty` may be called from any thread; all other functions on the client's strand.
class operation_queue
{
public:
    operation_queue() = default;
    operation_queue(const operation_queue&) = delete;
    operation_queue& operator=(const operation_queue&) = delete;
    ~operation_queue() { drop_all(); }

    /// Adds an operation at the end of the queue. Returns whether it is the only waiting operation, so that a handler
    /// that starts it must be posted. After `drop_all` the operation is destroyed.
    bool add(operation_ptr operation);
    /// Returns whether no operation waits to be started.
    [[nodiscard]] bool empty() const noexcept;
    /// Returns the number of operations that wait to be started.
    [[nodiscard]] std::size_t waiting_count() const noexcept;
    [[nodiscard]] bool has_in_flight() const noexcept { return !in_flight_.empty(); }
    [[nodiscard]] std::size_t in_flight_count() const noexcept { return in_flight_count_; }
    /// Returns how many of the latest operations in a row were started while no other operation was in flight.
    [[nodiscard]] unsigned alone_in_a_row() const noexcept { return alone_in_a_row_; }
    /// Returns whether operations were given up whose completions have not been called yet.
    [[nodiscard]] bool has_unreported_failures() const noexcept { return !given_up_.empty(); }

    /// Returns the next operation that waits to be started; null if there is none.
    [[nodiscard]] const operation* first() const noexcept;
    /// Removes the next operation from the queue, to be started; null if there is none.
    [[nodiscard]] operation_ptr take();
    /// Undoes `take`: returns the operation to the front of the queue. Does nothing if it was given up meanwhile.
    void put_back(operation& operation);
    /// Removes the waiting operations for which `is_taken` returns true.
    [[nodiscard]] std::vector<operation_ptr> take_waiting(const std::function<bool(const operation&)>& is_taken);
    /// Removes an operation that has ended or is about to end.
    void remove(operation& operation) noexcept;

    /// Postpones every deadline.
    void postpone(lease_clock::duration delay) noexcept;
    /// Gives up all operations that wait, or all that were started. `end_some` ends them later. An operation that is
    /// answered before that ends with its answer.
    void give_up_waiting(const failure_ptr& failure);
    void give_up_in_flight(const failure_ptr& failure);
    /// Ends some operations: those that were given up, those whose deadline has passed, and waiting operations that are
    /// not wanted any more. Returns whether there may be more; the caller must then call the function again soon. After
    /// `false`, the next call checks all waiting operations again.
    /// \param connection_failure why no request can be sent; null if requests can be sent
    /// \param new_deadline deadline of an operation that is requested at `now`
    [[nodiscard]] bool end_some(
        lease_clock::time_point now, const failure_ptr& connection_failure, lease_clock::time_point new_deadline);
    /// Destroys all operations without calling their completions. Operations that are added later are destroyed too.
    void drop_all() noexcept;

private:
    /// The list owns a reference to each operation.
    using list = boost::intrusive::list<operation, boost::intrusive::constant_time_size<false>>;
    struct given_up_group
    {
        list operations{};
        delivery status;
        failure_ptr failure;
    };
    class budget;

    void give_up(list& all, delivery status, const failure_ptr& failure);
    void end_given_up(budget& left);
    void end_overdue_in_flight(budget& left, lease_clock::time_point now, const failure_ptr& connection_failure);
    void end_overdue_waiting(budget& left, lease_clock::time_point now, const failure_ptr& connection_failure,
        lease_clock::time_point new_deadline);

    mutable colock::detail::light_mutex mutex_;
    list waiting_;
    std::size_t waiting_count_ = 0;
    /// The waiting operation at which the next call of `end_some` continues. Valid while `is_scanning_` is true.
    list::iterator scan_position_ = waiting_.begin();
    bool is_scanning_ = false;
    bool closed_ = false;

    list in_flight_;
    std::size_t in_flight_count_ = 0;
    unsigned alone_in_a_row_ = 0;
    /// Increased when the operations in flight are given up.
    unsigned generation_ = 0;
    std::deque<given_up_group> given_up_;
};

} // namespace colock::inline v0::remote
