// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <chrono>

namespace colock::inline v0::detail {

/// The parameters of a request for a lease, with the local time at which it was sent.
struct lease_request
{
    lease_clock::time_point sent_at;
    /// 0: the lease does not expire.
    std::chrono::milliseconds ttl;
    /// The adapter's `max_clock_lead` for this TTL.
    std::chrono::milliseconds clock_lead{0};
};

/// Returns whether the TTL is too short for a backend with this `clock_lead`: below four times the lead.
[[nodiscard]] constexpr bool is_too_short(std::chrono::milliseconds ttl, std::chrono::milliseconds clock_lead) noexcept
{
    return clock_lead > ttl / 4;
}

/// Returns the time at which the holder ends the lease. It is never later than the backend's expiry, under the
/// assumptions below.
///
/// The backend ends the lease once its own clock shows at least `ttl` more than at the grant. The backend's clock may
/// run faster than the local clock by one percent, and jump ahead by `clock_lead` meanwhile. The lease is therefore
/// counted from before the request was sent, and shortened by both amounts.
[[nodiscard]] lease_clock::time_point local_deadline(const lease_request& request) noexcept;

} // namespace colock::inline v0::detail
