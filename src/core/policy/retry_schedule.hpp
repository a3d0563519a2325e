// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>
#include <colock/error.hpp>
#include <colock/retry_policy.hpp>

#include <cstddef>

namespace colock::inline v0::detail {

/// Whether the retry policy applies to a failed attempt with this error. If not, the error ends the acquire.
[[nodiscard]] inline bool is_retryable(const error_code& code) noexcept
{
    return code == errc::unavailable || code == errc::outcome_unknown;
}

/// The progress of one call under its retry policy. Performs no I/O and reads no clock.
class retry_schedule
{
public:
    using time_point = lease_clock::time_point;

    /// The policy must outlive the schedule.
    retry_schedule(const retry_policy& policy, time_point start) noexcept;

    /// Records that a counted attempt has failed, and sets next_at(). Returns false if the policy gives up.
    /// \throws what a custom function throws
    [[nodiscard]] bool on_failed(time_point now);

    /// When the next attempt is due. Before the first failure this is the start.
    [[nodiscard]] time_point next_at() const noexcept { return next_at_; }
    /// Returns when the total time of the policy ends; time_point::max() if it has none.
    [[nodiscard]] time_point deadline() const noexcept { return deadline_; }
    [[nodiscard]] time_point start() const noexcept { return start_; }
    /// Number of attempts that have counted.
    [[nodiscard]] std::size_t attempts() const noexcept { return attempts_; }
    /// Number of requests that were sent for abandoned claims, before this call started again with new claims.
    [[nodiscard]] std::size_t earlier_requests() const noexcept { return earlier_requests_; }
    void add_earlier_requests(std::size_t count) noexcept { earlier_requests_ += count; }
    /// Records that the call ends because the lock is busy. The type of the exception does not show that, because a
    /// custom function of the policy may throw a `retry_error`, too.
    void end_busy() noexcept { has_ended_busy_ = true; }
    [[nodiscard]] bool has_ended_busy() const noexcept { return has_ended_busy_; }
    /// Whether the policy can end by itself.
    [[nodiscard]] bool finite() const noexcept { return policy_->finite(); }

private:
    const retry_policy* policy_;
    time_point start_;
    time_point next_at_;
    time_point deadline_;
    lease_clock::duration previous_{0};
    std::size_t attempts_ = 0;
    std::size_t earlier_requests_ = 0;
    bool has_ended_busy_ = false;
};

} // namespace colock::inline v0::detail
