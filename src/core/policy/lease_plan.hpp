// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>
#include <colock/error.hpp>
#include <colock/lost_reason.hpp>
#include <colock/options.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

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
[[nodiscard]] lease_clock::time_point local_expiry(const lease_request& request) noexcept;

/// Returns the time from a request for a lease to the next renewal.
[[nodiscard]] constexpr std::chrono::milliseconds renewal_delay(std::chrono::milliseconds ttl) noexcept
{
    return ttl / 3;
}

/// Decides when a lease is renewed, when the body under it has to stop, and when it is lost. Performs no I/O, takes no
/// mutex and reads no clock.
///
/// The expiry of the lease is not stored here, because a session may end the lease, too. Callers pass the expiry.
class lease_plan
{
public:
    using time_point = lease_clock::time_point;
    using milliseconds = std::chrono::milliseconds;

    /// The margins of the locker. Defaults for those that are not set depend on the lease.
    struct margins
    {
        std::optional<milliseconds> minimum_validity{};
        std::optional<milliseconds> stop_margin{};

        [[nodiscard]] bool any() const noexcept { return minimum_validity || stop_margin; }
    };

    enum class action : unsigned char
    {
        wait,
        /// The lease has ended.
        lose,
        stop_body,
        renew,
    };

    struct decision
    {
        action kind = action::wait;
        /// For `wait`: when `next` must be called again at the latest.
        time_point until = time_point::max();
    };

    /// \param max_hold 0: without a limit
    lease_plan() = default;
    lease_plan(bool renews, milliseconds max_hold) noexcept : max_hold_(max_hold), renews_(renews) {}

    /// Whether enough time of a grant, and of its session, is left for the holder to use the lock.
    [[nodiscard]] static bool arrives_in_time(
        lease_request granted, time_point session_until, time_point now, const margins& configured) noexcept;

    // Called when the lease begins or changes. Each function returns the new expiry, not considering the session.
    /// \param session_until deadline of the session to which the lease is tied
    [[nodiscard]] time_point on_granted(lease_request request, time_point session_until = time_point::max()) noexcept;
    /// \param ttl the TTL of the lock; a renewal before the end of max_hold asks for less
    [[nodiscard]] time_point on_extended(lease_request request, milliseconds ttl) noexcept;
    /// Called when an extension is sent. A shorter TTL applies at once, because the answer may never arrive. Returns
    /// nothing if the extension does not shorten the lease, whose expiry is `expiry`.
    [[nodiscard]] std::optional<time_point> on_shortened(lease_request request, time_point expiry) noexcept;

    /// Called when the group of the lease is complete. From now on max_hold counts, and the lease is renewed only if
    /// the caller asked for it. Returns the new expiry of the lease; `expiry` is the old one.
    [[nodiscard]] time_point on_group_complete(
        time_point now, bool renews, milliseconds max_hold, time_point expiry) noexcept;

    /// Called when a renewal or an extension has failed. The lease is not lost: if it is renewed, another renewal is
    /// due soon.
    void on_failed(time_point now) noexcept;
    /// Called when another operation is answered. A renewal that could not be sent during that operation is due now.
    void catch_up(time_point now) noexcept;
    /// Sets when the next renewal is due. Requires `renews()`.
    void schedule_renewal(time_point due) noexcept { renew_at_ = due; }
    /// Removes the scheduled renewal, because it is being sent, cannot be sent, or is not wanted any more.
    void forget_renewal() noexcept { renew_at_ = time_point::max(); }
    /// Returns the TTL that a renewal asks for, which max_hold limits. Returns nothing if it is below the minimum TTL.
    [[nodiscard]] std::optional<milliseconds> renewal_ttl(
        time_point now, milliseconds ttl, milliseconds min_ttl) const noexcept;

    void begin_body() noexcept { body_runs_ = true; }
    void end_body() noexcept { body_runs_ = false; }
    /// Records that the body has to stop. `reason` is `expired` if the stop margin is reached. Only the first reason is
    /// reported.
    void stop_body(lost_reason reason) noexcept;
    void add_listener() noexcept { ++listeners_; }
    void remove_listener() noexcept { --listeners_; }
    /// Ends the renewal of the lease.
    void stop_renewals() noexcept
    {
        renews_ = false;
        forget_renewal();
    }

    /// Returns the action that is due now for a lease with that `expiry`.
    /// \param watched whether the end of the lease must be detected even if nobody waits for it
    [[nodiscard]] decision next(
        time_point now, time_point expiry, const margins& configured, bool watched) const noexcept;
    /// Returns when `next` must be called again.
    [[nodiscard]] time_point due(time_point expiry, const margins& configured, bool watched) const noexcept;

    [[nodiscard]] bool renews() const noexcept { return renews_; }
    [[nodiscard]] bool body_runs() const noexcept { return body_runs_; }
    [[nodiscard]] bool body_must_stop() const noexcept { return body_must_stop_; }
    [[nodiscard]] bool stop_margin_reached() const noexcept { return stop_margin_reached_; }
    [[nodiscard]] lost_reason stop_reason() const noexcept { return stop_reason_; }
    [[nodiscard]] milliseconds max_hold() const noexcept { return max_hold_; }
    /// Whether max_hold ends the lease. The backend does not know max_hold.
    [[nodiscard]] bool is_bounded() const noexcept { return hold_until_ != time_point::max(); }

private:
    static constexpr std::chrono::duration<std::uint16_t, std::milli> max_stop_margin{1000};

    [[nodiscard]] time_point apply_ttl(lease_request request) noexcept;
    [[nodiscard]] time_point expiry_of(lease_request request) const noexcept;
    [[nodiscard]] time_point stop_at(time_point expiry, const margins& configured) const noexcept;

    milliseconds max_hold_{0};
    time_point hold_until_ = time_point::max();
    /// The smaller of the TTL and max_hold. The default margins are fractions of this duration.
    milliseconds span_{0};
    time_point renew_at_ = time_point::max();
    /// Number of coroutines that wait for the loss.
    std::uint32_t listeners_ = 0;
    lost_reason stop_reason_ = lost_reason::expired;
    bool renews_ : 1 = false;
    bool body_runs_ : 1 = false;
    bool body_must_stop_ : 1 = false;
    bool stop_margin_reached_ : 1 = false;
    /// Upper limit of the default stop margin: a tenth of the time of the session, which may be much shorter than the
    /// TTL.
    std::chrono::duration<std::uint16_t, std::milli> session_margin_{max_stop_margin};
};

} // namespace colock::inline v0::detail
