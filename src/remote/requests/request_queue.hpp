// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/operation_queue.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

namespace colock::inline v0::remote {

class client_base;

/// The request queue of a client. Operations are started in order, as soon as possible, and end one by one. The client
/// owns the queue, and informs it about changes of the connection.
///
/// Thread safety: `submit` may be called from any thread; all other functions belong to the strand.
class request_queue
{
public:
    struct callbacks
    {
        /// Returns whether the next operation can be started now. If it can, it is started at once. May send operations
        /// that were started before.
        std::function<bool(const operation&)> can_start;
        /// Sends the requests that the last started operations share.
        std::function<void()> send;
    };
    struct limits
    {
        static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

        /// Maximum number of operations in flight. It limits the work of one handler of a driver that ends all requests
        /// of a connection in one call.
        std::size_t in_flight = none;
        /// Maximum number of operations that are started in one handler.
        std::size_t started_per_handler = 64;
    };

    /// \param owner must outlive this object
    request_queue(client_base& owner, deadlines deadlines, limits queue_limits, callbacks queue_callbacks)
        : owner_(owner), deadlines_(deadlines), limits_(queue_limits), callbacks_(std::move(queue_callbacks))
    {
    }

    /// Starts an operation as soon as possible. An operation without a deadline gets one. The operation ends on the
    /// strand, or is destroyed if the context has shut down.
    void submit(operation_ptr operation);
    /// Returns an operation that could not be sent to the front of the queue.
    void requeue(operation& operation);
    /// Must be called when an operation has ended, before its completion is called.
    void on_ended(operation& operation);
    /// Sends `event::drained` to a connection that has ended if nothing is in flight on it. Must be called when
    /// something has ended that the client's usage counts as in flight, and that is no operation of this queue.
    void notify_if_drained();

    /// Starts operations that wait, as far as possible.
    void flush();
    /// Like `flush`, in a separate handler, so that requests that follow an answer are sent together.
    void flush_soon();
    /// Removes the operations that were not started, and for which `is_taken` returns true. The caller submits them to
    /// another queue.
    [[nodiscard]] std::vector<operation_ptr> take_waiting(const std::function<bool(const operation&)>& is_taken)
    {
        return operations_.take_waiting(is_taken);
    }
    /// Tells the queue that the caller has posted a handler that calls `flush`, so that `submit` posts no other.
    void expect_flush() noexcept { is_flush_due_.store(true, std::memory_order_relaxed); }
    /// Postpones every deadline, and ends the operations that are overdue.
    /// \param stall_time time in which the event loop did not run
    void end_overdue(lease_clock::duration stall_time);

    /// Ends every operation in flight with `failure`, because the connection is lost.
    void fail_in_flight(const failure_ptr& failure);
    /// Fails every operation that was not started, with `failure`. If no operation is in flight, the connection is
    /// dropped.
    void fail_waiting(const failure_ptr& failure);
    /// Fails every operation, because the deadline of a close has passed.
    void fail_all();
    /// Must be called when the context has shut down. Destroys all operations without calling their completions; later
    /// operations are not queued.
    void drop_all() noexcept { operations_.drop_all(); }

    /// Number of operations that were not started.
    [[nodiscard]] std::size_t waiting_count() const noexcept { return operations_.waiting_count(); }
    [[nodiscard]] std::size_t in_flight_count() const noexcept { return operations_.in_flight_count(); }
    /// Returns whether no operation waits to be started.
    [[nodiscard]] bool empty() const noexcept { return operations_.empty(); }
    [[nodiscard]] bool has_unreported_failures() const noexcept { return operations_.has_unreported_failures(); }
    /// Interval at which `end_overdue` has to be called.
    [[nodiscard]] lease_clock::duration check_interval() const noexcept { return deadlines_.check_interval(); }

private:
    /// Posts a `flush` if the queue has stopped because too many operations were in flight.
    void flush_if_was_full();
    void end_some();

    client_base& owner_;
    const deadlines deadlines_;
    const limits limits_;
    const callbacks callbacks_;
    operation_queue operations_;
    /// Whether the handler that starts the next operation is dispatched, not posted. True if the last operations were
    /// alone in flight, so that the next one is unlikely to be sent together with others.
    std::atomic<bool> at_once_{false};
    /// Whether a handler is posted that calls `flush`, and so will start all operations that were queued before it
    /// runs.
    std::atomic<bool> is_flush_due_{false};
    bool flushing_ = false;
    /// Whether the next operation must wait until an operation in flight has ended.
    bool is_full_ = false;
    /// Whether a handler that ends more operations has been posted.
    bool ending_ = false;
};

} // namespace colock::inline v0::remote
