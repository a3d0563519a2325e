// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/policy/lease_plan.hpp"

#include <algorithm>

namespace colock::detail {

using namespace std::chrono_literals;

lease_clock::time_point local_deadline(const lease_request& asked) noexcept
{
    if (asked.ttl == 0ms)
        return lease_clock::time_point::max();
    // Clocks may run apart by a hundredth, and the backend may round by a millisecond in each direction.
    const lease_clock::duration margin = lease_clock::duration(asked.ttl) / 100 + 2ms;
    return saturating_add(asked.sent, lease_clock::duration(asked.ttl - asked.clock_lead) - margin);
}

bool lease_plan::arrives_in_time(
    lease_request granted, time_point session_until, time_point now, const margins& of) noexcept
{
    const auto leaves = [&](time_point ends, milliseconds by_default) {
        return ends == time_point::max() || saturating_add(now, of.minimum_validity.value_or(by_default)) <= ends;
    };
    // A session may be much shorter than the ttl, and be raised all the time.
    return leaves(local_deadline(granted), std::max(10ms, granted.ttl / 10)) &&
           leaves(session_until, std::clamp(granted.ttl / 100, 10ms, 100ms));
}

lease_plan::time_point lease_plan::bound(lease_request by) const noexcept
{
    return std::min(local_deadline(by), hold_until_);
}

lease_plan::time_point lease_plan::stands(lease_request by) noexcept
{
    span_ = is_bounded() ? std::min(by.ttl, max_hold_) : by.ttl;
    return bound(by);
}

lease_plan::time_point lease_plan::granted(lease_request by, time_point session_until) noexcept
{
    if (session_until != time_point::max()) {
        const auto tenth = std::clamp<lease_clock::duration>((session_until - by.sent) / 10, 0ms, longest_margin);
        session_margin_ = std::chrono::duration_cast<decltype(session_margin_)>(tenth);
    }
    if (by.ttl > 0ms && max_hold_ > 0ms)
        hold_until_ = saturating_add(by.sent, max_hold_);
    return extended(by, by.ttl);
}

lease_plan::time_point lease_plan::extended(lease_request by, milliseconds ttl) noexcept
{
    if (renews_ && ttl > 0ms)
        renew_at_ = saturating_add(by.sent, ttl / 3);
    return stands(by);
}

std::optional<lease_plan::time_point> lease_plan::shortened(lease_request by, time_point stands_until) noexcept
{
    if (bound(by) >= stands_until)
        return std::nullopt;
    return stands(by);
}

lease_plan::time_point lease_plan::handed_out(
    time_point now, bool renews, milliseconds max_hold, time_point stands_until) noexcept
{
    asked_for(renews, max_hold);
    if (!renews_)
        forget_renewal();
    if (span_ > 0ms && max_hold_ > 0ms) {
        hold_until_ = saturating_add(now, max_hold_);
        span_ = std::min(span_, max_hold_);
    }
    return std::min(stands_until, hold_until_);
}

void lease_plan::failed(time_point now) noexcept
{
    if (renews_)
        renew_at_ = saturating_add(now, std::clamp<lease_clock::duration>(span_ / 10, 10ms, 1s));
}

void lease_plan::catches_up(time_point now) noexcept
{
    if (renews_ && renew_at_ == time_point::max())
        renew_at_ = now;
}

std::optional<std::chrono::milliseconds> lease_plan::renewal_ttl(
    time_point now, milliseconds ttl, milliseconds shortest) const noexcept
{
    const auto rest =
        std::chrono::ceil<milliseconds>(std::min<lease_clock::duration>(hold_until_ - now, lease_clock::duration(ttl)));
    return rest < shortest ? std::nullopt : std::optional(rest);
}

void lease_plan::stops_body(lost_reason why) noexcept
{
    if (!body_stops_)
        stop_reason_ = why;
    body_stops_ = true;
    if (why == lost_reason::expired)
        stop_margin_reached_ = true;
}

lease_plan::time_point lease_plan::stop_at(time_point stands_until, const margins& of) const noexcept
{
    if (!body_runs_ || stop_margin_reached_ || stands_until == time_point::max())
        return time_point::max();
    const auto by_default = std::min<lease_clock::duration>(span_ / 10, session_margin_);
    return stands_until - (of.stop_margin ? lease_clock::duration(*of.stop_margin) : by_default);
}

lease_plan::decision lease_plan::next(
    time_point now, time_point stands_until, const margins& of, bool watched) const noexcept
{
    if (now >= stands_until)
        return {action::lose};
    if (now >= stop_at(stands_until, of))
        return {action::stop_body};
    if (now >= renew_at_)
        return {action::renew};
    return {action::wait, due(stands_until, of, watched)};
}

lease_plan::time_point lease_plan::due(time_point stands_until, const margins& of, bool watched) const noexcept
{
    if (!watched && !renews_ && !body_runs_ && listeners_ == 0 && !is_bounded())
        return renew_at_;
    return std::min({renew_at_, stands_until, stop_at(stands_until, of)});
}

} // namespace colock::detail
