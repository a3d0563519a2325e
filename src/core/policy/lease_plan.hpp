// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>
#include <colock/error.hpp>
#include <colock/options.hpp>

#include <chrono>
#include <cstdint>
#include <optional>

namespace colock::detail {

/// A request for a lease, from its sender's side.
struct lease_request
{
    lease_clock::time_point sent;
    /// 0: without end.
    std::chrono::milliseconds ttl;
    /// The adapter's `max_clock_lead` for this ttl.
    std::chrono::milliseconds clock_lead{0};
};

/// Whether a lease of that ttl is too short to be cut by `clock_lead`.
[[nodiscard]] constexpr bool is_too_short(std::chrono::milliseconds ttl, std::chrono::milliseconds clock_lead) noexcept
{
    return clock_lead > ttl / 4;
}

/// Returns the expiry as the holder counts it. It is never later than the backend's, within the bounds below.
///
/// The backend ends the lease once its own clock shows at least `ttl` more than at the grant. That clock may run faster
/// than ours by a hundredth, and jump ahead by `clock_lead` meanwhile. The lease is therefore counted from before the
/// request was sent, and shortened by both.
[[nodiscard]] lease_clock::time_point local_deadline(const lease_request& asked) noexcept;

/// When a lease is renewed, when the body under it has to stop, and when it is lost. Knows no I/O, takes no lock and
/// reads no clock: it is told what happens, and asked.
///
/// Until when the lease stands is not kept here, because a session may end it too: whoever asks says so.
class lease_plan
{
public:
    using time_point = lease_clock::time_point;
    using milliseconds = std::chrono::milliseconds;

    /// Of the locker; those that are not set follow from the lease.
    struct margins
    {
        std::optional<milliseconds> minimum_validity{};
        std::optional<milliseconds> stop_margin{};

        [[nodiscard]] bool any() const noexcept { return minimum_validity || stop_margin; }
    };

    enum class action : unsigned char
    {
        wait,
        /// It is over.
        lose,
        stop_body,
        renew,
    };

    struct decision
    {
        action what = action::wait;
        /// To wait.
        time_point until = time_point::max();
    };

    /// `max_hold` 0: for as long as it likes.
    void asked_for(bool renews, milliseconds max_hold) noexcept
    {
        renews_ = renews;
        max_hold_ = max_hold;
    }

    /// Whether so much is left of a grant, and of the session that carries it, that its holder can use it.
    [[nodiscard]] static bool arrives_in_time(
        lease_request granted, time_point session_until, time_point now, const margins& of) noexcept;

    // The lease begins, and changes: each returns until when it stands, as far as requests decide that.
    /// \param session_until of the session that carries it
    [[nodiscard]] time_point granted(lease_request by, time_point session_until = time_point::max()) noexcept;
    /// `ttl` is that of the lock: a renewal before the end of max_hold asks for less.
    [[nodiscard]] time_point extended(lease_request by, milliseconds ttl) noexcept;
    /// A shorter ttl counts from the request on, because its answer may never come.
    [[nodiscard]] std::optional<time_point> shortened(lease_request by, time_point stands_until) noexcept;

    /// The group of the lease is complete: max_hold counts from now on, and it is renewed only if that was asked for.
    /// Returns until when the lease stands, which was `stands_until`.
    [[nodiscard]] time_point handed_out(
        time_point now, bool renews, milliseconds max_hold, time_point stands_until) noexcept;

    /// A renewal or an extension was answered with an error, which is no loss: it is tried again until the lease ends.
    void failed(time_point now) noexcept;
    /// The answer was another one's: what fell due meanwhile is due now.
    void catches_up(time_point now) noexcept;
    /// The next renewal is due then. For a lease that is renewed.
    void renews_at(time_point due) noexcept { renew_at_ = due; }
    /// The renewal that was due is being made, cannot be, or is not wanted any more.
    void forget_renewal() noexcept { renew_at_ = time_point::max(); }
    /// What a renewal asks for: no more than max_hold leaves; nothing if that is less than any lease has.
    [[nodiscard]] std::optional<milliseconds> renewal_ttl(
        time_point now, milliseconds ttl, milliseconds shortest) const noexcept;

    void body_begins() noexcept { body_runs_ = true; }
    void body_ends() noexcept { body_runs_ = false; }
    /// The body is to stop: `expired` for the stop margin. The first reason is the one that is reported.
    void stops_body(lost_reason why) noexcept;
    void listener_enters() noexcept { ++listeners_; }
    void listener_leaves() noexcept { --listeners_; }
    /// It is renewed no more.
    void left_to_its_ttl() noexcept
    {
        renews_ = false;
        forget_renewal();
    }

    /// What is to be done now with a lease that stands until then. `watched`: somebody is to hear of its end.
    [[nodiscard]] decision next(
        time_point now, time_point stands_until, const margins& of, bool watched) const noexcept;
    /// When to ask again.
    [[nodiscard]] time_point due(time_point stands_until, const margins& of, bool watched) const noexcept;

    [[nodiscard]] bool renews() const noexcept { return renews_; }
    [[nodiscard]] bool body_runs() const noexcept { return body_runs_; }
    [[nodiscard]] bool body_stops() const noexcept { return body_stops_; }
    [[nodiscard]] bool stop_margin_reached() const noexcept { return stop_margin_reached_; }
    [[nodiscard]] lost_reason stop_reason() const noexcept { return stop_reason_; }
    [[nodiscard]] milliseconds max_hold() const noexcept { return max_hold_; }
    /// The lease ends by max_hold, of which the backend knows nothing.
    [[nodiscard]] bool is_bounded() const noexcept { return hold_until_ != time_point::max(); }

private:
    static constexpr std::chrono::duration<std::uint16_t, std::milli> longest_margin{1000};

    [[nodiscard]] time_point stands(lease_request by) noexcept;
    [[nodiscard]] time_point bound(lease_request by) const noexcept;
    [[nodiscard]] time_point stop_at(time_point stands_until, const margins& of) const noexcept;

    milliseconds max_hold_{0};
    time_point hold_until_ = time_point::max();
    /// What the lease in force was counted from, which the margins are parts of: its ttl, or max_hold.
    milliseconds span_{0};
    time_point renew_at_ = time_point::max();
    /// Coroutines that wait for the loss.
    std::uint32_t listeners_ = 0;
    lost_reason stop_reason_ = lost_reason::expired;
    bool renews_ : 1 = false;
    bool body_runs_ : 1 = false;
    bool body_stops_ : 1 = false;
    bool stop_margin_reached_ : 1 = false;
    /// How long before the end of a session a body stops: a session may be much shorter than the ttl.
    std::chrono::duration<std::uint16_t, std::milli> session_margin_{longest_margin};
};

} // namespace colock::detail
