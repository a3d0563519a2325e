// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace colock::inline v0::detail {

/// Decides when a release that has failed is sent again, and when the retries end. Performs no I/O, takes no mutex and
/// reads no clock.
///
/// Not the number of retries is limited, but their time. They end one operation timeout after the backend must have
/// ended the claim by itself, and never if the backend does not end claims.
class release_retries
{
public:
    using time_point = lease_clock::time_point;
    using milliseconds = std::chrono::milliseconds;

    /// Called for each request with a TTL that the backend may have executed.
    /// \param ttl 0: the backend keeps the claim until it is released
    void note_expiry(time_point sent_at, milliseconds ttl) noexcept
    {
        latest_expiry_ = std::max(latest_expiry_, ttl == ttl.zero() ? time_point::max() : saturating_add(sent_at, ttl));
    }
    /// Called when a release has failed, and sets `next_at`. Returns false if no other attempt follows.
    /// \param expires whether the backend ends claims by itself
    [[nodiscard]] bool on_failed(time_point now, bool expires, milliseconds operation_timeout) noexcept
    {
        const auto deadline = expires ? saturating_add(latest_expiry_, operation_timeout) : time_point::max();
        if (now >= deadline)
            return false;
        delay_ = std::clamp<decltype(delay_)>(delay_ * 2U, min_delay, max_delay);
        next_at_ = std::min(saturating_add(now, delay_), deadline);
        return true;
    }
    /// Returns when the next attempt is due; max if none is.
    [[nodiscard]] time_point next_at() const noexcept { return next_at_; }
    /// Returns whether an attempt is due, and counts it as sent.
    [[nodiscard]] bool take_due(time_point now) noexcept
    {
        if (now < next_at_)
            return false;
        next_at_ = time_point::max();
        return true;
    }

private:
    static constexpr std::chrono::duration<std::uint32_t, std::milli> min_delay{50};
    static constexpr std::chrono::duration<std::uint32_t, std::milli> max_delay{2000};

    time_point next_at_ = time_point::max();
    /// The latest time at which the backend may still keep the claim, if nothing removes it.
    time_point latest_expiry_{};
    std::chrono::duration<std::uint32_t, std::milli> delay_{0};
};

} // namespace colock::inline v0::detail
