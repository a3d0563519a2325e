// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace colock {

/// What a custom retry function is told.
struct retry_attempt
{
    /// The attempt that has just failed, counted from 0.
    std::size_t number = 0;
    /// When the call began.
    lease_clock::time_point start{};
    /// The delay before that attempt; zero before the first.
    lease_clock::duration previous_delay{0};
};

/// Returned by a custom retry function to give up.
struct retry_stop_t
{
};
inline constexpr retry_stop_t retry_stop{};

/// What a custom retry function answers: a delay (zero: at once; negative counts as zero), or retry_stop.
class retry_decision
{
public:
    template <class Rep, class Period>
    constexpr retry_decision(std::chrono::duration<Rep, Period> delay)
        : delay_(std::clamp(saturating_cast(delay), lease_clock::duration::zero(), longest))
    {
    }
    constexpr retry_decision(retry_stop_t) noexcept {}

    /// The delay, or nothing for "stop".
    [[nodiscard]] constexpr const std::optional<lease_clock::duration>& delay() const noexcept { return delay_; }

private:
    static constexpr lease_clock::duration longest = std::chrono::hours(24 * 3650);

    std::optional<lease_clock::duration> delay_;
};

using retry_function = std::function<retry_decision(const retry_attempt&)>;

/// How long, how often and at what distance an acquire tries again. A value; the factories and setters never throw,
/// contradictions surface as `errc::invalid_retry` where the policy is used. A duration of any resolution may be given;
/// one beyond what lease_clock can count (292 years) is cut to that.
///
/// Where the backend has events (`capabilities::events`), a delay is only the safety poll: a release wakes the next
/// waiter at once, and an attempt for that is not counted unless it fails with an error. Nor is a look for what an
/// attempt of unknown outcome may have left, which would keep everybody out: after 1 s, 2 s, 4 s and so on up to 64 s,
/// where the delay is longer. A waiter that is not yet the head of the local queue counts its attempts by its own
/// delays.
///
/// Thread safety: distinct objects: safe. Shared objects: safe for const use; a custom function may be called from
/// whatever thread an acquire runs on.
class retry_policy
{
public:
    /// The same delay each time. Range: zero or more. Jitter 0.2 unless set otherwise.
    template <class Rep, class Period>
    [[nodiscard]] static retry_policy fixed(std::chrono::duration<Rep, Period> delay)
    {
        return make_fixed(saturating_cast(delay));
    }
    /// `first`, `first + step`, `first + 2 * step`, ...
    template <class Rep1, class Period1, class Rep2, class Period2>
    [[nodiscard]] static retry_policy linear(
        std::chrono::duration<Rep1, Period1> first, std::chrono::duration<Rep2, Period2> step)
    {
        return make_linear(saturating_cast(first), saturating_cast(step));
    }
    /// `first`, `first * factor`, ... up to `cap`. The factor is at least 1, the cap at least `first`.
    template <class Rep1, class Period1, class Rep2, class Period2>
    [[nodiscard]] static retry_policy exponential(
        std::chrono::duration<Rep1, Period1> first, double factor, std::chrono::duration<Rep2, Period2> cap)
    {
        return make_exponential(saturating_cast(first), factor, saturating_cast(cap));
    }
    /// Delays come from `function` and are taken as they are. What it throws comes out of the acquire unchanged, and
    /// nothing is held afterwards.
    [[nodiscard]] static retry_policy custom(retry_function function);
    /// No end, a safety poll every 2 s. The default of every acquire.
    [[nodiscard]] static retry_policy forever();
    /// One attempt.
    [[nodiscard]] static retry_policy never();

    /// Spreads each delay evenly over `delay * (1 - fraction)` to `delay * (1 + fraction)`. Range: 0 to 1.
    retry_policy& jitter(double fraction) &;
    retry_policy&& jitter(double fraction) &&;
    /// At most `n` retries after the first attempt.
    retry_policy& times(std::size_t n) &;
    retry_policy&& times(std::size_t n) &&;
    /// One absolute deadline for the whole call, never restarted by a wake-up. Range: more than zero.
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

    /// What is wrong with this policy, in words; empty if nothing is.
    [[nodiscard]] std::string problem() const;

    [[nodiscard]] const std::optional<std::size_t>& max_retries() const noexcept { return times_; }
    [[nodiscard]] const std::optional<lease_clock::duration>& max_time() const noexcept { return total_; }
    /// Whether the policy can end on its own: limited in number, in time, or by a custom function.
    [[nodiscard]] bool finite() const noexcept { return times_ || total_ || function_; }

    /// The delay after the attempt that has just failed, without jitter; nothing for "give up".
    /// Decides by number and function; the total time is the caller's to watch.
    [[nodiscard]] std::optional<lease_clock::duration> delay_after(const retry_attempt& attempt) const;
    [[nodiscard]] double jitter() const noexcept { return jitter_; }

private:
    static retry_policy make_fixed(lease_clock::duration delay);
    static retry_policy make_linear(lease_clock::duration first, lease_clock::duration step);
    static retry_policy make_exponential(lease_clock::duration first, double factor, lease_clock::duration cap);

    lease_clock::duration first_{std::chrono::seconds(2)};
    lease_clock::duration step_{0};
    lease_clock::duration cap_{lease_clock::duration::max()};
    double factor_ = 1.0;
    double jitter_ = 0.0;
    bool is_custom_ = false;
    std::optional<std::size_t> times_;
    std::optional<lease_clock::duration> total_;
    std::shared_ptr<const retry_function> function_;
};

} // namespace colock
