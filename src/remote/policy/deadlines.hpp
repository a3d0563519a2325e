// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>
#include <colock/spi/adapter.hpp>

#include <cstddef>

namespace colock::inline v0::remote {

/// Maximum number of operations that are checked or ended in one handler. Between two handlers, the event loop can do
/// other work.
inline constexpr std::size_t max_per_handler = 256;

/// State of a request when its operation ended.
enum class delivery : unsigned char
{
    answered,
    /// Certainly not sent.
    unsent,
    /// Sent, at least in part, and not answered.
    unanswered,
};

/// Deadlines of operations, and the errors of operations that exceed them.
///
/// A timer checks the deadlines at intervals of `check_interval()`. Time during which the event loop did not run is not
/// counted, because answers that arrived in that time have not been read yet.
class deadlines
{
public:
    explicit deadlines(lease_clock::duration operation_timeout) noexcept : timeout_(operation_timeout) {}

    /// Returns the deadline of an operation that was requested at that time.
    [[nodiscard]] lease_clock::time_point deadline_for(lease_clock::time_point requested_at) const noexcept
    {
        return saturating_add(requested_at, timeout_);
    }
    /// Returns the interval between two checks of the deadlines.
    [[nodiscard]] lease_clock::duration check_interval() const noexcept;
    /// Returns how long the event loop did not run before a timer event at `now`, or zero if the event is not late. All
    /// deadlines that were set before the event must be postponed by this time.
    /// \param due the time for which the timer was set
    [[nodiscard]] static lease_clock::duration stall_time(
        lease_clock::time_point due, lease_clock::time_point now) noexcept;
    [[nodiscard]] static bool is_over(lease_clock::time_point deadline, lease_clock::time_point now) noexcept
    {
        return deadline <= now;
    }
    /// Returns the error of an overdue operation: `unavailable` if it was certainly not sent, with `connection_failure`
    /// as the cause if it is not null; otherwise `outcome_unknown`.
    [[nodiscard]] static failure_ptr overdue_failure(delivery status, const failure_ptr& connection_failure);

private:
    lease_clock::duration timeout_;
};

} // namespace colock::inline v0::remote
