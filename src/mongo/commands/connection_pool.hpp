// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/commands/connection.hpp"
#include "mongo/driver/authentication.hpp"

#include <colock/clock.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace colock::mongo::detail {

/// Some lanes to one server. What is asked waits for one in the order in which it was asked; one that was spoiled is
/// replaced when the next is needed.
///
/// Where lanes authenticate, they do so one at a time, with pauses, and before they are given anything. libmongoc 1.23
/// hashes the password for each of them, which blocks the event loop. In between it goes on, and what is asked is sent
/// on the lanes that are ready.
///
/// Thread safety: none; belongs to the strand.
class connection_pool final : public std::enable_shared_from_this<connection_pool>, public lane_owner
{
public:
    using task_ptr = std::shared_ptr<task>;

    connection_pool(const asio::any_io_executor& strand, destination to, std::size_t most);
    /// Nobody is told of what is under way.
    ~connection_pool();
    connection_pool(const connection_pool&) = delete;
    connection_pool& operator=(const connection_pool&) = delete;

    /// To be told when what is asked would not wait any more.
    void on_room(std::function<void()> told) { room_ = std::move(told); }
    /// To be told when the last of them has ended that nobody used.
    void on_all_stale(std::function<void()> told) { all_stale_ = std::move(told); }

    /// \param deadline from then on it fails, if it has been begun
    void ask(task_ptr asked, lease_clock::time_point deadline);
    /// False: it has been begun, or has ended.
    [[nodiscard]] bool withdraw(const task& asked);
    /// Nobody waits for it any more: it is withdrawn, or fails with its lane.
    void give_up(const task& asked);
    /// What is asked now does not wait.
    [[nodiscard]] bool has_room() const noexcept { return waiting_.empty() && (!free_.empty() || may_open()); }

    [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.size(); }
    [[nodiscard]] std::size_t under_way() const noexcept { return open_.size() - free_.size(); }
    /// Those that stand, used or not.
    [[nodiscard]] std::size_t open() const noexcept { return open_.size(); }

    /// Those that nobody uses. What waits goes on waiting.
    void close_free();
    /// What is under way fails, and what waits is told that it was not begun.
    void close_all();

private:
    struct pending_request
    {
        task_ptr asked;
        lease_clock::time_point deadline;
    };

    void on_free(connection& which, bool spoiled) override;
    void on_stale(connection& which) override;
    [[nodiscard]] bool may_open() const noexcept { return open_.size() < most_ && !unready_ && !rests_; }
    void authenticate(connection& made);
    std::shared_ptr<authentication> end_authentication() noexcept;
    /// Authenticates no lane for as long as the last one took, so that the event loop and the server keep up.
    void rest();
    /// Fails the first task that waits, if there is one.
    void fail_next(answer why);
    void run_next();
    /// The same, and tells if more can be asked.
    void go_on();
    [[nodiscard]] connection* take_free();
    void close(connection& which);

    const asio::any_io_executor strand_;
    const destination to_;
    const std::size_t most_;
    std::function<void()> room_;
    std::function<void()> all_stale_;
    std::deque<pending_request> waiting_;
    std::vector<std::shared_ptr<connection>> open_;
    /// The one used last is used next: the others grow old.
    std::vector<connection*> free_;
    /// The lane that is not authenticated yet, and its task; null if all are.
    const connection* unready_ = nullptr;
    std::shared_ptr<authentication> authentication_;
    lease_clock::time_point authentication_began_{};
    lease_timer rest_;
    bool rests_ = false;
};

} // namespace colock::mongo::detail
