// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/export.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/wait_traits.hpp>

#include <chrono>
#include <concepts>
#include <ratio>
#include <type_traits>

namespace colock::inline v0 {

namespace asio = boost::asio;

/// The clock that measures every lease: CLOCK_BOOTTIME, which keeps running while the machine is suspended and is never
/// set.
///
/// The wall clock can be set forwards or backwards, and CLOCK_MONOTONIC stops during a suspend. A lease that is
/// measured by either of them can outlive the grant in the backend. Satisfies the requirements of a standard
/// TrivialClock; `is_steady` is true.
///
/// Thread safety: all functions may be called from any thread.
struct COLOCK_EXPORT lease_clock
{
    /// Signed count of nanoseconds.
    using rep = std::chrono::nanoseconds::rep;
    /// The unit: nanoseconds.
    using period = std::chrono::nanoseconds::period;
    /// Duration in nanoseconds. Range: about 292 years.
    using duration = std::chrono::nanoseconds;
    /// Time point of this clock. The epoch is the boot of the machine.
    using time_point = std::chrono::time_point<lease_clock>;
    /// True, because the clock is never set.
    static constexpr bool is_steady = true;

    /// Returns the current time.
    [[nodiscard]] static time_point now() noexcept;
};

/// Returns `span` in the resolution of lease_clock, clamped to the range of that clock. Without the clamp, a large
/// value such as `std::chrono::milliseconds::max()` would overflow in nanoseconds.
template <class Rep, class Period>
[[nodiscard]] constexpr lease_clock::duration saturating_cast(std::chrono::duration<Rep, Period> span) noexcept
{
    // The comparison uses the coarser of the two units, because the conversion to that unit cannot overflow. For
    // integers this is the unit of the caller. A double cannot overflow, and a double that rounds to the limit counts
    // as beyond the limit.
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

/// Returns `point + span`, clamped to the range of lease_clock instead of overflowing. A negative span counts as zero.
template <class Rep, class Period>
[[nodiscard]] constexpr lease_clock::time_point saturating_add(
    lease_clock::time_point point, std::chrono::duration<Rep, Period> span) noexcept
{
    if (span <= span.zero())
        return point;
    const auto rest = saturating_cast(span);
    // `max() - point` can overflow only for a point before the epoch of the clock, and for such a point the sum cannot
    // overflow.
    if (point >= lease_clock::time_point{} && rest > lease_clock::time_point::max() - point)
        return lease_clock::time_point::max();
    return point + rest;
}

} // namespace colock::inline v0

/// Timers of Asio sleep on CLOCK_MONOTONIC, which stops while the machine is suspended. No single wait is therefore
/// longer than 5 s, so that a timer on lease_clock is at most 5 s late after the machine resumes.
template <>
struct boost::asio::wait_traits<colock::lease_clock>
{
    static colock::lease_clock::duration to_wait_duration(const colock::lease_clock::duration& span) noexcept
    {
        constexpr colock::lease_clock::duration max_wait = std::chrono::seconds(5);
        return span < max_wait ? span : max_wait;
    }

    static colock::lease_clock::duration to_wait_duration(const colock::lease_clock::time_point& point) noexcept
    {
        const auto now = colock::lease_clock::now();
        return point <= now ? colock::lease_clock::duration::zero() : to_wait_duration(point - now);
    }
};

namespace colock::inline v0 {

/// An Asio timer that runs on lease_clock.
using lease_timer = asio::basic_waitable_timer<lease_clock, asio::wait_traits<lease_clock>, asio::any_io_executor>;

} // namespace colock::inline v0
