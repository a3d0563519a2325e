// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "report.hpp"

#include <colock/locker.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace bench {

/// Measures the time from the end of a server to the next grants. One locker holds a lock and the others wait for it.
/// The holder releases the lock as soon as a server accepts the request.
class fail_over
{
public:
    static constexpr std::size_t waiters = 5;
    static constexpr const char* key = "fail-over";

    /// \param busy_answers number of busy answers after which a locker waits for messages
    fail_over(boost::asio::io_context& io, std::size_t busy_answers) : io_(io), busy_answers_(busy_answers) {}

    /// \param lockers one for the holder and each waiter, with connections of their own
    /// \param kill ends the server when all others wait
    /// \param await_successor runs on a thread of its own from then on, and returns when another server can grant locks
    void run(std::vector<colock::locker> lockers, const std::function<void()>& kill,
        const std::function<void()>& await_successor);

    /// Adds a row for each duration.
    /// \param first what the first duration ends with
    /// \param median_limit highest median time to the next grant, in milliseconds, if there is a limit
    /// \param worst_limit longest time to the next grant, the same
    void add_rows(report& results, const std::string& first, std::optional<double> median_limit,
        std::optional<double> worst_limit) const;

private:
    using time_point = std::chrono::steady_clock::time_point;

    static boost::asio::awaitable<void> hold_until_server_died(fail_over& self, colock::locker locker);
    static boost::asio::awaitable<void> wait_until_queued(fail_over& self, const std::vector<colock::locker>& lockers);

    boost::asio::io_context& io_;
    const std::size_t busy_answers_;
    std::size_t running_ = 0;
    bool server_died_ = false;
    std::vector<time_point> granted_{};

    /// Durations in milliseconds: from the end of the server to its successor, and from there to the grants.
    std::vector<double> successions_{};
    std::vector<double> next_grants_{};
    std::vector<double> last_grants_{};
};

} // namespace bench
