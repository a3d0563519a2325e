// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/policy/lease_plan.hpp"

#include <algorithm>

namespace colock::inline v0::detail {

using namespace std::chrono_literals;

lease_clock::time_point local_expiry(const lease_request& request) noexcept
{
    if (request.ttl == 0ms)
        return lease_clock::time_point::max();
    // The margin covers clock rates that differ by one percent, and rounding by a millisecond in each direction.
    const lease_clock::duration margin = lease_clock::duration(request.ttl) / 100 + 2ms;
    return saturating_add(request.sent_at, lease_clock::duration(request.ttl - request.clock_lead) - margin);
}

bool lease_plan::arrives_in_time(
    lease_request granted, time_point session_until, time_point now, const margins& configured) noexcept
{
    const auto is_enough_left = [&](time_point ends, milliseconds default_minimum) {
        return ends == time_point::max() ||
               saturating_add(now, configured.minimum_validity.value_or(default_minimum)) <= ends;
    };
    // The deadline of a session may be much nearer than the TTL, because it is extended continuously.
    return is_enough_left(local_expiry(granted), std::max(10ms, granted.ttl / 10)) &&
           is_enough_left(session_until, std::clamp(granted.ttl / 100, 10ms, 100ms));
}

lease_plan::time_point lease_plan::expiry_of(lease_request request) const noexcept
{
    return std::min(local_expiry(request), hold_until_);
}

lease_plan::time_point lease_plan::apply_ttl(lease_request request) noexcept
{
    span_ = is_bounded() ? std::min(request.ttl, max_hold_) : request.ttl;
    return expiry_of(request);
}

lease_plan::time_point lease_plan::on_granted(lease_request request, time_point session_until) noexcept
{
    if (session_until != time_point::max()) {
        const auto tenth =
            std::clamp<lease_clock::duration>((session_until - request.sent_at) / 10, 0ms, max_stop_margin);
        session_margin_ = std::chrono::duration_cast<decltype(session_margin_)>(tenth);
    }
    if (request.ttl > 0ms && max_hold_ > 0ms)
        hold_until_ = saturating_add(request.sent_at, max_hold_);
    return on_extended(request, request.ttl);
}

lease_plan::time_point lease_plan::on_extended(lease_request request, milliseconds ttl) noexcept
{
    if (renews_ && ttl > 0ms)
        renew_at_ = saturating_add(request.sent_at, renewal_delay(ttl));
    return apply_ttl(request);
}

std::optional<lease_plan::time_point> lease_plan::on_shortened(lease_request request, time_point expiry) noexcept
{
    if (expiry_of(request) >= expiry)
        return std::nullopt;
    return apply_ttl(request);
}

lease_plan::time_point lease_plan::on_group_complete(
    time_point now, bool renews, milliseconds max_hold, time_point expiry) noexcept
{
    renews_ = renews;
    max_hold_ = max_hold;
    if (!renews_)
        forget_renewal();
    if (span_ > 0ms && max_hold_ > 0ms) {
        hold_until_ = saturating_add(now, max_hold_);
        span_ = std::min(span_, max_hold_);
    }
    return std::min(expiry, hold_until_);
}

void lease_plan::on_failed(time_point now) noexcept
{
    if (renews_)
        renew_at_ = saturating_add(now, std::clamp<lease_clock::duration>(span_ / 10, 10ms, 1s));
}

void lease_plan::catch_up(time_point now) noexcept
{
    if (renews_ && renew_at_ == time_point::max())
        renew_at_ = now;
}

std::optional<std::chrono::milliseconds> lease_plan::renewal_ttl(
    time_point now, milliseconds ttl, milliseconds min_ttl) const noexcept
{
    const auto rest =
        std::chrono::ceil<milliseconds>(std::min<lease_clock::duration>(hold_until_ - now, lease_clock::duration(ttl)));
    return rest < min_ttl ? std::nullopt : std::optional(rest);
}

void lease_plan::stop_body(lost_reason reason) noexcept
{
    if (!body_must_stop_)
        stop_reason_ = reason;
    body_must_stop_ = true;
    if (reason == lost_reason::expired)
        stop_margin_reached_ = true;
}

lease_plan::time_point lease_plan::stop_at(time_point expiry, const margins& configured) const noexcept
{
    if (!body_runs_ || stop_margin_reached_ || expiry == time_point::max())
        return time_point::max();
    const auto default_margin = std::min<lease_clock::duration>(span_ / 10, session_margin_);
    return expiry - (configured.stop_margin ? lease_clock::duration(*configured.stop_margin) : default_margin);
}

lease_plan::decision lease_plan::next(
    time_point now, time_point expiry, const margins& configured, bool watched) const noexcept
{
    if (now >= expiry)
        return {action::lose};
    if (now >= stop_at(expiry, configured))
        return {action::stop_body};
    if (now >= renew_at_)
        return {action::renew};
    return {action::wait, due(expiry, configured, watched)};
}

lease_plan::time_point lease_plan::due(time_point expiry, const margins& configured, bool watched) const noexcept
{
    if (!watched && !renews_ && !body_runs_ && listeners_ == 0 && !is_bounded())
        return renew_at_;
    return std::min({renew_at_, expiry, stop_at(expiry, configured)});
}

} // namespace colock::inline v0::detail
