// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/policy/connection_plan.hpp"

#include <algorithm>
#include <utility>

namespace colock::inline v0::remote {

namespace {

using namespace std::chrono_literals;

/// Minimum time for which an unused connection is kept, because a caller that was just answered may send its next
/// request immediately.
constexpr lease_clock::duration min_idle_time = 10ms;
/// How long an attempt to connect continues when no caller needs the connection any more.
constexpr lease_clock::duration max_unneeded_connecting = 1s;
/// Maximum delay of the timer. A longer delay would save nothing.
constexpr lease_clock::duration max_timer_delay = 60s;

constexpr bool keeps_forever(lease_clock::duration idle_timeout)
{
    return idle_timeout == lease_clock::duration::max();
}

} // namespace

connection_plan::action connection_plan::resume(lease_clock::time_point now, event input, demand current_demand)
{
    switch (input) {
    case event::needed:
        if (phase_ != phase::idle)
            return {};
        if (now < refused_until_) {
            phase_ = phase::waiting;
            return {.step = action::kind::wait, .delay = refused_until_ - now};
        }
        phase_ = phase::connecting;
        demoted_ = false;
        given_up_ = false;
        return {.step = action::kind::connect, .report = all_->began()};
    case event::opened:
        return on_opened(now);
    case event::failed:
        // A ZooKeeper session continues to connect by itself during the back-off, so an attempt may fail in that phase
        // too.
        return phase_ == phase::connecting ? on_failed(current_demand) : action{.report = all_->failed()};
    case event::refused:
        // The client itself closes the connection, so this is not a loss.
        return disconnect(phase_ == phase::open ? all_->closed() : connection_events::event::none);
    case event::lost:
    case event::silent:
        return on_lost(input, current_demand);
    case event::drained:
        return phase_ == phase::draining ? wait_or_disconnect(current_demand, connection_events::event::none)
                                         : action{};
    case event::due:
        if (phase_ != phase::waiting)
            return {};
        phase_ = phase::idle;
        return current_demand.needed ? resume(now, event::needed, current_demand) : disconnect();
    case event::timer:
        return on_timer(now, current_demand);
    case event::given_up:
        given_up_ = true;
        return {};
    }
    return {};
}

connection_plan::action connection_plan::on_opened(lease_clock::time_point now)
{
    phase_ = phase::open;
    used_ = now;
    if (refused_since_ == lease_clock::time_point::max())
        delays_.reset();
    return {.report = all_->opened()};
}

void connection_plan::note_accepted() noexcept
{
    was_accepted_ = true;
    refused_since_ = lease_clock::time_point::max();
    delays_.reset();
}

bool connection_plan::tolerates_refusal(lease_clock::time_point now) noexcept
{
    if (!was_accepted_)
        return false;
    refused_since_ = std::min(refused_since_, now);
    if (now - refused_since_ >= refusal_tolerance)
        return false;
    refused_until_ = now + delays_.next();
    return true;
}

connection_plan::action connection_plan::on_failed(demand current_demand)
{
    return wait_or_disconnect(current_demand, all_->failed());
}

connection_plan::action connection_plan::on_lost(event input, demand current_demand)
{
    if (phase_ == phase::connecting)
        return on_failed(current_demand);
    if (phase_ != phase::open)
        return {};
    phase_ = phase::draining;
    // The silent period has already delayed the reconnection, so no back-off follows.
    skips_delay_ = input == event::silent;
    // A connection that the client has given up is not a loss.
    const auto report = given_up_ ? all_->closed() : all_->lost();
    // The next connection is established only after all operations have been notified of the end of this one.
    return current_demand.has_in_flight ? action{.report = report} : wait_or_disconnect(current_demand, report);
}

connection_plan::action connection_plan::wait_or_disconnect(demand current_demand, connection_events::event report)
{
    if (!current_demand.needed)
        return disconnect(report);
    phase_ = phase::waiting;
    return {.step = action::kind::wait,
        .report = report,
        .delay = std::exchange(skips_delay_, false) ? lease_clock::duration::zero() : delays_.next()};
}

connection_plan::action connection_plan::disconnect(connection_events::event report) noexcept
{
    if (std::exchange(phase_, phase::idle) == phase::connecting && report == connection_events::event::none)
        report = all_->gave_up();
    return {.step = action::kind::disconnect, .report = report};
}

connection_plan::action connection_plan::on_timer(lease_clock::time_point now, demand current_demand)
{
    if (current_demand.used || current_demand.has_in_flight)
        used_ = now;
    if (current_demand.needed)
        return {};
    const auto unused = now - used_;
    switch (phase_) {
    case phase::waiting:
        return disconnect();
    case phase::connecting:
        // The next caller may need the connection.
        return closes_ || retired_ || unused >= max_unneeded_connecting ? disconnect() : action{};
    case phase::open: {
        const bool is_due =
            retired_ || closes_ || (!keeps_forever(idle_timeout_) && unused >= std::max(idle_timeout_, min_idle_time));
        return is_due ? disconnect(all_->closed()) : action{};
    }
    case phase::idle:
    case phase::draining:
        return {};
    }
    return {};
}

void connection_plan::close(lease_clock::time_point deadline) noexcept
{
    closes_ = true;
    close_deadline_ = std::min(close_deadline_, deadline);
}

void connection_plan::cancel_close() noexcept
{
    closes_ = false;
    close_deadline_ = lease_clock::time_point::max();
}

bool connection_plan::finish_close(lease_clock::time_point now, client_state client) noexcept
{
    const bool all_closed = phase_ == phase::idle && !client.others_open;
    if (!all_closed && (client.has_pending_completions || !out_of_time(now)))
        return false;
    close_deadline_ = lease_clock::time_point::max();
    return true;
}

std::optional<lease_clock::duration> connection_plan::next_timer_in(
    demand current_demand, client_state client, lease_clock::duration check_interval) const noexcept
{
    if (!current_demand.needed && phase_ == phase::idle && !client.others_open && !client.closing)
        return std::nullopt;
    if (current_demand.needed || closes_ || client.closing)
        return check_interval;
    if (phase_ != phase::open && phase_ != phase::idle)
        return max_unneeded_connecting;
    if (retired_)
        return min_idle_time;
    return keeps_forever(idle_timeout_) ? lease_clock::duration::max()
                                        : std::clamp(idle_timeout_, min_idle_time, max_timer_delay);
}

} // namespace colock::inline v0::remote
