// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/client_base.hpp"
#include "remote/requests/operation_queue.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <limits>
#include <utility>

namespace colock::inline v0::remote {

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
    static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

    /// \param owner must outlive this object
    /// \param max_in_flight maximum number of operations in flight. It limits the work of one handler: when a
    ///     connection ends, all operations in flight may be notified in the same handler.
    request_queue(client_base& owner, deadlines given, std::size_t max_in_flight, callbacks made)
        : owner_(owner), deadlines_(given), max_in_flight_(max_in_flight), callbacks_(std::move(made))
    {
    }

    /// Starts an operation as soon as possible. The operation ends on the strand, or is destroyed if the context has
    /// shut down.
    void submit(operation_ptr added);
    /// Puts an operation that could not be sent back to the front of the queue.
    void requeue(operation& which);
    /// Must be called when an operation has ended, before its completion is called.
    void on_ended(operation& which);

    /// Starts operations that wait, as far as possible.
    void flush();
    /// Like `flush`, in a separate handler, so that requests that follow an answer are sent together.
    void flush_soon();
    /// Postpones every deadline, and ends the operations that are overdue.
    /// \param stall_time time in which the event loop did not run
    void end_overdue(lease_clock::duration stall_time);

    /// Fails every operation that was not started, with `why`.
    void refuse(const failure_ptr& why);
    /// Ends every operation with a failure, because the deadline of a close has passed.
    void give_up_all();
    /// Must be called when the context has shut down. Destroys all operations without calling their completions; later
    /// operations are not queued.
    void drop_all() noexcept { operations_.drop_all(); }

    /// Number of operations that were not started.
    [[nodiscard]] std::size_t waiting_count() const noexcept { return operations_.waiting_count(); }
    /// Returns the part of the client's usage that the queue causes.
    [[nodiscard]] client_base::usage current_usage() const noexcept;

private:
    /// Posts a `flush` if the queue has stopped because too many operations were in flight.
    void flush_if_was_full();
    void end_some();
    void note_end();

    client_base& owner_;
    const deadlines deadlines_;
    const std::size_t max_in_flight_;
    const callbacks callbacks_;
    operation_queue operations_;
    /// Whether the next operation is started by the thread that submits it. True if the last operations were alone in
    /// flight, so that it is unlikely to be sent together with others.
    std::atomic<bool> at_once_{false};
    bool flushing_ = false;
    /// Whether the next operation must wait until an operation in flight has ended.
    bool is_full_ = false;
    /// Whether a handler that ends more operations has been posted.
    bool ending_ = false;
};

} // namespace colock::inline v0::remote
