// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/wait_traits.hpp>

#include <chrono>
#include <concepts>
#include <ratio>
#include <type_traits>

namespace colock {

namespace asio = boost::asio;

/// The clock of every lease: CLOCK_BOOTTIME, which keeps running while the machine is suspended and never steps.
///
/// The wall clock steps, and CLOCK_MONOTONIC stops in a suspend; a lease counted on either can outlive what the
/// backend granted. Satisfies the requirements of a standard TrivialClock; `is_steady` is true.
///
/// Thread safety: all functions may be called from any thread.
struct lease_clock
{
    using rep = std::chrono::nanoseconds::rep;
    using period = std::chrono::nanoseconds::period;
    using duration = std::chrono::nanoseconds;
    using time_point = std::chrono::time_point<lease_clock>;
    static constexpr bool is_steady = true;

    [[nodiscard]] static time_point now() noexcept;
};

/// `span` in the clock's resolution, clamped to its range: `std::chrono::milliseconds::max()` in nanoseconds would
/// overflow.
template <class Rep, class Period>
[[nodiscard]] constexpr lease_clock::duration saturating_cast(std::chrono::duration<Rep, Period> span) noexcept
{
    // Compared in the coarser unit, which cannot overflow: for whole numbers that is the caller's. Doubles do not
    // overflow anyway, and one that rounds to the limit counts as beyond it.
    constexpr bool exact = std::signed_integral<Rep> && std::ratio_greater_equal_v<Period, lease_clock::period>;
    using coarse =
        std::conditional_t<exact, std::chrono::duration<lease_clock::rep, Period>, std::chrono::duration<double>>;
    const coarse wide = span;
    if (!(wide < std::chrono::duration_cast<coarse>(lease_clock::duration::max())))
        return lease_clock::duration::max();
    if (!(wide > std::chrono::duration_cast<coarse>(lease_clock::duration::min())))
        return lease_clock::duration::min();
    return std::chrono::duration_cast<lease_clock::duration>(span);
}
[[nodiscard]] constexpr lease_clock::duration saturating_cast(lease_clock::duration span) noexcept
{
    return span;
}

/// `point + span`, clamped to the clock's range instead of overflowing. A negative span counts as zero.
template <class Rep, class Period>
[[nodiscard]] constexpr lease_clock::time_point saturating_add(
    lease_clock::time_point point, std::chrono::duration<Rep, Period> span) noexcept
{
    if (span <= span.zero())
        return point;
    const auto rest = saturating_cast(span);
    // No time point is so far back that what is left until the last one overflows, but those before the clock's epoch.
    if (point >= lease_clock::time_point{} && rest > lease_clock::time_point::max() - point)
        return lease_clock::time_point::max();
    return point + rest;
}

} // namespace colock

/// Timers sleep on CLOCK_MONOTONIC, which does not see a suspend: no single wait is longer than 5 s, so that a timer on
/// lease_clock is at most that late after the machine wakes.
template <>
struct boost::asio::wait_traits<colock::lease_clock>
{
    static colock::lease_clock::duration to_wait_duration(const colock::lease_clock::duration& span) noexcept
    {
        constexpr colock::lease_clock::duration longest = std::chrono::seconds(5);
        return span < longest ? span : longest;
    }

    static colock::lease_clock::duration to_wait_duration(const colock::lease_clock::time_point& point) noexcept
    {
        const auto now = colock::lease_clock::now();
        return point <= now ? colock::lease_clock::duration::zero() : to_wait_duration(point - now);
    }
};

namespace colock {

/// An Asio timer that runs on lease_clock.
using lease_timer = asio::basic_waitable_timer<lease_clock, asio::wait_traits<lease_clock>, asio::any_io_executor>;

} // namespace colock
