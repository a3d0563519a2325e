// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/client_base.hpp"
#include "remote/requests/operation_queue.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <limits>
#include <utility>

namespace colock::remote {

/// The requests of a client: its operations are started in their order, as soon as each can be, and end one by one. A
/// client owns it, and tells it what becomes of the connection.
///
/// Thread safety: `submit` may be called from any thread; the rest belongs to the strand.
class request_queue
{
public:
    struct callbacks
    {
        /// Returns whether the next operation can be started now. If it can, it is started at once. May send operations
        /// that were started before.
        std::function<bool(const operation&)> can_start;
        /// Sends what the operations share that were started last.
        std::function<void()> send;
    };
    static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

    /// \param owner lives as long
    /// \param max_in_flight number of operations that may be started and not ended: all of them may be told in one
    ///        handler that their connection has ended
    request_queue(client_base& owner, deadlines given, std::size_t max_in_flight, callbacks made)
        : owner_(owner), deadlines_(given), max_in_flight_(max_in_flight), callbacks_(std::move(made))
    {
    }

    /// Starts an operation as soon as possible. The operation ends on the strand; it is dropped if the context is gone.
    void submit(operation_ptr added);
    /// An operation that was started could not be sent: it becomes the next.
    void again(operation& which);
    /// An operation has ended, and has not told its caller yet.
    void ended(operation& which);

    /// Starts operations that wait, as far as possible.
    void flush();
    /// The same by a handler of its own, so that requests that follow an answer are sent together.
    void flush_soon();
    /// Moves every deadline, and ends the operations that are overdue.
    /// \param stood_still time in which the event loop did not run
    void end_overdue(lease_clock::duration stood_still);

    /// Every operation that was not started fails with `why`.
    void refuse(const failure_ptr& why);
    /// The time that a close was given is over: every operation fails.
    void give_up_all();
    /// In the child of a fork: every operation fails, which is told from the strand.
    void forked();
    /// The context is gone: nobody is told, and nothing is queued any more.
    void drop_all() noexcept { operations_.drop_all(); }

    /// Number of operations that were not started.
    [[nodiscard]] std::size_t waiting() const noexcept { return operations_.waiting(); }
    /// Returns the part of the client's usage that is due to the queue.
    [[nodiscard]] client_base::usage current_usage() const noexcept;

private:
    void start_held_back();
    void end_some();
    void note_end();

    client_base& owner_;
    const deadlines deadlines_;
    const std::size_t max_in_flight_;
    const callbacks callbacks_;
    operation_queue operations_;
    /// The next operation is started by the thread that submits it: the last ones were alone, so that others to send
    /// it with are not to be expected.
    std::atomic<bool> at_once_{false};
    bool flushing_ = false;
    /// The next operation waits until one of those in flight has ended.
    bool is_full_ = false;
    /// A handler that ends more operations is posted.
    bool ending_ = false;
};

} // namespace colock::remote
