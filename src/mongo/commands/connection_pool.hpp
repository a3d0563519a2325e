// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/authentication.hpp"
#include "mongo/driver/connection.hpp"

#include <colock/clock.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace colock::inline v0::mongo::detail {

/// Connections to one server. Tasks wait for a free connection in the order in which they arrived. An unusable
/// connection is replaced when the next one is needed.
///
/// If the destination has credentials, connections authenticate one at a time, with pauses, before they get a task.
/// libmongoc 1.23 hashes the password for each connection, which blocks the event loop. In the pauses the event loop
/// continues, and tasks are sent on the connections that are ready.
///
/// Thread safety: none; belongs to the strand.
class connection_pool final : public std::enable_shared_from_this<connection_pool>, public connection_owner
{
public:
    using task_ptr = std::shared_ptr<task>;

    connection_pool(const asio::any_io_executor& strand, destination to, std::size_t max_connections);
    /// Tasks in progress are dropped, and are not notified.
    ~connection_pool();
    connection_pool(const connection_pool&) = delete;
    connection_pool& operator=(const connection_pool&) = delete;

    /// Sets the function to call when a new task would not have to wait.
    void on_capacity(std::function<void()> callback) { on_capacity_ = std::move(callback); }
    /// Sets the function to call when a connection has been authenticated.
    void on_authenticated(std::function<void()> callback) { on_authenticated_ = std::move(callback); }
    /// Sets the function to call when the last connection has ended while it was free. If a new task notices the end,
    /// the pool is closed, and the task ends as not sent.
    void on_all_stale(std::function<void()> callback) { on_all_stale_ = std::move(callback); }

    /// Starts a task on a free connection, or queues it until a connection is free.
    /// \param deadline time from which the driver's calls fail; a task that is still in the queue stays there
    void ask(task_ptr queued_task, lease_clock::time_point deadline);
    /// Removes a task that waits. Returns false if the task was started or has ended.
    [[nodiscard]] bool withdraw(const task& which);
    /// Withdraws a task that waits, or closes the connection that performs it, so that it fails.
    void give_up(const task& which);
    /// Returns whether a new task would not have to wait.
    [[nodiscard]] bool has_capacity() const noexcept { return waiting_.empty() && (!free_.empty() || may_open()); }

    [[nodiscard]] std::size_t waiting_count() const noexcept { return waiting_.size(); }
    [[nodiscard]] std::size_t in_flight() const noexcept { return open_.size() - free_.size(); }
    /// Number of open connections, busy or free.
    [[nodiscard]] std::size_t open_count() const noexcept { return open_.size(); }

    /// Closes the free connections. Tasks that wait stay in the queue.
    void close_free();
    /// Closes all connections. Tasks in progress fail, and tasks that wait end as not sent.
    void close_all();

private:
    struct pending_request
    {
        task_ptr queued_task;
        lease_clock::time_point deadline;
    };

    void on_free(connection& which, bool closed) override;
    void on_stale(connection& which) override;
    [[nodiscard]] bool may_open() const noexcept
    {
        return open_.size() < max_connections_ && !unauthenticated_ && !is_paused_;
    }
    void authenticate(connection& new_connection);
    std::shared_ptr<authentication> end_authentication() noexcept;
    /// Authenticates no connection for as long as the last authentication took, so that the event loop and the server
    /// keep up.
    void pause_authentication();
    /// Fails the first task that waits, if there is one.
    void fail_next(answer result);
    void run_next();
    /// Gives waiting tasks to free connections, and calls `on_capacity_` if more tasks can be started.
    void process_queue();
    /// Returns a free connection, or null. Opens a connection if none is free and another one is allowed. If it has to
    /// authenticate first, it becomes free afterwards, and null is returned. Null is also returned if all connections
    /// have ended, which is reported.
    [[nodiscard]] connection* take_free();
    void close(connection& which);

    const asio::any_io_executor strand_;
    const destination to_;
    const std::size_t max_connections_;
    std::function<void()> on_capacity_;
    std::function<void()> on_all_stale_;
    std::function<void()> on_authenticated_;
    std::deque<pending_request> waiting_;
    std::vector<std::shared_ptr<connection>> open_;
    /// Free connections. The connection used last is used next, so that the others stay idle.
    std::vector<connection*> free_;
    /// The connection that is not authenticated yet, and its task; null if there is none.
    const connection* unauthenticated_ = nullptr;
    std::shared_ptr<authentication> authentication_;
    lease_clock::time_point authentication_began_{};
    lease_timer pause_timer_;
    bool is_paused_ = false;
};

} // namespace colock::inline v0::mongo::detail
