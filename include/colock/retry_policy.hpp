// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/clock.hpp>
#include <colock/detail/export.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace colock::inline v0 {

/// The arguments of a custom retry function.
struct retry_attempt
{
    /// Number of the attempt that has just failed, counted from 0.
    std::size_t number = 0;
    /// Start time of the call.
    lease_clock::time_point start{};
    /// The delay before that attempt; zero for the first attempt.
    lease_clock::duration previous_delay{0};
};

/// Type of retry_stop.
struct retry_stop_t
{
};
/// Value that a custom retry function returns to end the acquire.
inline constexpr retry_stop_t retry_stop{};

/// Result of a custom retry function: a delay or retry_stop. Zero means at once; a negative delay counts as zero.
class COLOCK_EXPORT retry_decision
{
public:
    /// Makes a decision from a delay, at most 3650 days, or from retry_stop. Implicit, so that a function may return
    /// either.
    template <class Rep, class Period>
    constexpr retry_decision(std::chrono::duration<Rep, Period> delay)
        : delay_(std::clamp(saturating_cast(delay), lease_clock::duration::zero(), max_delay))
    {
    }
    constexpr retry_decision(retry_stop_t) noexcept {}

    /// Returns the delay, or an empty optional for retry_stop.
    [[nodiscard]] constexpr const std::optional<lease_clock::duration>& delay() const noexcept { return delay_; }

private:
    static constexpr lease_clock::duration max_delay = std::chrono::hours(24 * 3650);

    std::optional<lease_clock::duration> delay_;
};

/// A custom retry function: returns the delay after the attempt that has just failed, or retry_stop.
using retry_function = std::function<retry_decision(const retry_attempt&)>;

/// Defines how long, how often and at which intervals an acquire tries again. The factories and setters never throw: a
/// contradictory policy is reported as `errc::invalid_retry` when it is used. Durations may have any resolution. A
/// duration beyond the range of lease_clock (292 years) is clamped.
///
/// A default-made policy sets nothing. In acquire_options, it means the policy of the locker, and `jitter`, `times` and
/// `total_time` override only that property of it. Everywhere else, it means forever(). A policy of a factory sets
/// everything, so nothing of the locker's policy applies.
///
/// If the backend has events (`capabilities::events`), the delay is only a safety interval: a release wakes the next
/// waiter at once. An attempt after such a wake-up is not counted unless it fails with an error.
///
/// An attempt of unknown outcome may leave a grant in the backend that excludes everyone. Until the backend answers,
/// additional attempts check for such a grant: after 1 s, then 2 s, 4 s and so on up to 64 s, if the delay is longer.
/// They are not counted either.
///
/// A waiter behind another caller of its locker sends no request. Nevertheless, if the policy has a limit, an attempt
/// is counted at the start and after each delay.
///
/// Thread safety: distinct objects: safe. Shared objects: safe for const use. A custom function may be called from any
/// thread on which an acquire runs.
class COLOCK_EXPORT retry_policy
{
public:
    /// Makes a policy that sets nothing.
    retry_policy() = default;
    /// Does not compile: a time may limit the whole call, or be the delay.
    template <class Rep, class Period>
    COLOCK_REFUSED("write within(5s) to wait for at most 5 s, or retry_policy::fixed(5s) to try every 5 s")
    retry_policy(std::chrono::duration<Rep, Period>);
    /// The same delay after each attempt. Range: zero or more. Jitter 0.2 unless set otherwise.
    template <class Rep, class Period>
    [[nodiscard]] static retry_policy fixed(std::chrono::duration<Rep, Period> delay)
    {
        return make_fixed(saturating_cast(delay));
    }
    /// Delays that grow by a fixed step: `first`, `first + step`, `first + 2 * step`, ...
    template <class Rep1, class Period1, class Rep2, class Period2>
    [[nodiscard]] static retry_policy linear(
        std::chrono::duration<Rep1, Period1> first, std::chrono::duration<Rep2, Period2> step)
    {
        return make_linear(saturating_cast(first), saturating_cast(step));
    }
    /// Delays that grow by a factor: `first`, `first * factor`, ... up to `cap`. The factor is at least 1, and the cap
    /// is at least `first`.
    template <class Rep1, class Period1, class Rep2, class Period2>
    [[nodiscard]] static retry_policy exponential(
        std::chrono::duration<Rep1, Period1> first, double factor, std::chrono::duration<Rep2, Period2> cap)
    {
        return make_exponential(saturating_cast(first), factor, saturating_cast(cap));
    }
    /// Delays that `function` returns. They are used without jitter. An exception of the function is thrown by the
    /// acquire unchanged, and nothing is held afterwards.
    [[nodiscard]] static retry_policy custom(retry_function function);
    /// No limit, with a safety interval of 2 s. The default of every acquire.
    [[nodiscard]] static retry_policy forever();
    /// A single attempt.
    [[nodiscard]] static retry_policy never();

    /// Spreads each delay uniformly from `delay * (1 - fraction)` to `delay * (1 + fraction)`. Range: 0 to 1.
    retry_policy& jitter(double fraction) &;
    retry_policy&& jitter(double fraction) &&;
    /// At most `n` retries after the first attempt.
    retry_policy& times(std::size_t n) &;
    retry_policy&& times(std::size_t n) &&;
    /// Maximum duration of the whole call. The deadline is absolute: a wake-up does not restart it. Range: more than
    /// zero.
    template <class Rep, class Period>
    retry_policy& total_time(std::chrono::duration<Rep, Period> limit) &
    {
        total_ = saturating_cast(limit);
        return *this;
    }
    template <class Rep, class Period>
    retry_policy&& total_time(std::chrono::duration<Rep, Period> limit) &&
    {
        return std::move(total_time(limit));
    }

    /// Returns this policy. If it was not made by a factory, what is not set is taken from `defaults`.
    [[nodiscard]] retry_policy with_defaults(const retry_policy& defaults) const;
    /// Returns whether nothing is set, as in a default-made policy.
    [[nodiscard]] bool empty() const noexcept { return !has_delays_ && !jitter_ && !times_ && !total_; }

    /// Returns a description of the contradiction in this policy, or an empty string if the policy is valid.
    [[nodiscard]] std::string problem() const;

    /// Returns the number that was set by `times`; empty if there is no limit.
    [[nodiscard]] const std::optional<std::size_t>& max_retries() const noexcept { return times_; }
    /// Returns the duration that was set by `total_time`; empty if there is no limit.
    [[nodiscard]] const std::optional<lease_clock::duration>& max_time() const noexcept { return total_; }
    /// Returns whether the policy can end an acquire: it has a maximum number of retries, a maximum time, or a custom
    /// function.
    [[nodiscard]] bool finite() const noexcept { return times_ || total_ || function_; }

    /// Returns the delay after the attempt that has just failed, without jitter, or an empty optional to end the
    /// acquire. Considers the number of attempts and the custom function. The caller must check the total time.
    [[nodiscard]] std::optional<lease_clock::duration> delay_after(const retry_attempt& attempt) const;
    /// Returns the fraction that was set by `jitter(fraction)` or by the factory; 0.2 if there is none.
    [[nodiscard]] double jitter() const noexcept { return jitter_.value_or(default_jitter); }

private:
    static constexpr double default_jitter = 0.2;

    static retry_policy make_fixed(lease_clock::duration delay);
    static retry_policy make_linear(lease_clock::duration first, lease_clock::duration step);
    static retry_policy make_exponential(lease_clock::duration first, double factor, lease_clock::duration cap);

    lease_clock::duration first_{std::chrono::seconds(2)};
    lease_clock::duration step_{0};
    lease_clock::duration cap_{lease_clock::duration::max()};
    double factor_ = 1.0;
    std::optional<double> jitter_;
    /// Whether a factory has made this policy.
    bool has_delays_ = false;
    bool is_custom_ = false;
    std::optional<std::size_t> times_;
    std::optional<lease_clock::duration> total_;
    std::shared_ptr<const retry_function> function_;
};

/// Waits for at most `limit`: equal to `retry_policy::forever().total_time(limit)`. A limit of zero or less is one
/// attempt: equal to `retry_policy::never()`.
template <class Rep, class Period>
[[nodiscard]] retry_policy within(std::chrono::duration<Rep, Period> limit)
{
    const auto total = saturating_cast(limit);
    return total > total.zero() ? retry_policy::forever().total_time(total) : retry_policy::never();
}

} // namespace colock::inline v0
