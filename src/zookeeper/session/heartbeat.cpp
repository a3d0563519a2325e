// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session/heartbeat.hpp"

#include <algorithm>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

namespace {

using namespace std::chrono_literals;

/// Number of checks and of beats per session timeout.
constexpr int checks_per_timeout = 24;
constexpr int beats_per_timeout = 6;

/// Maximum number of checks in a connect and a handshake, which take at most a sixth of the timeout.
constexpr int max_connect_checks = checks_per_timeout / 6;

/// Limits in checks. A beat may take a third of the timeout, in addition to the sixth that passes before the beat.
constexpr remote::liveness::limits beat_limits{.before_first_data = max_connect_checks,
    .silence = checks_per_timeout / beats_per_timeout + checks_per_timeout / 3};

} // namespace

heartbeat::heartbeat(session_terms terms, duration connect_timeout) noexcept
    : connect_timeout_(connect_timeout), expiry_(terms), liveness_(beat_limits)
{
}

heartbeat::duration heartbeat::check_interval() const noexcept
{
    auto interval = expiry_.terms().timeout / checks_per_timeout;
    if (phase_ == phase::opening)
        interval = std::min(interval, connect_timeout_ / max_connect_checks);
    return std::max<duration>(interval, 1ms);
}

void heartbeat::on_connecting() noexcept
{
    phase_ = phase::opening;
    liveness_ = remote::liveness(beat_limits);
    reply_count_ = 0;
}

void heartbeat::on_connected(time_point sent_at, session_terms terms)
{
    phase_ = phase::open;
    liveness_ = remote::liveness(beat_limits);
    reply_count_ = 1;
    is_beat_in_flight_ = false;
    next_beat_ = time_point::min();
    expiry_.on_connected(sent_at, terms);
}

void heartbeat::on_disconnected() noexcept
{
    phase_ = phase::closed;
    expiry_.on_disconnected();
}

void heartbeat::on_write_answered(time_point sent_at, time_point now)
{
    ++reply_count_;
    expiry_.on_write_answered(sent_at, now);
}

void heartbeat::on_beat_ended(time_point now) noexcept
{
    is_beat_in_flight_ = false;
    next_beat_ = now + expiry_.terms().timeout / beats_per_timeout;
}

void heartbeat::on_beat_refused() noexcept
{
    ++reply_count_;
    is_beat_in_flight_ = false;
    next_beat_ = time_point::min();
}

bool heartbeat::begin_early_beat() noexcept
{
    return phase_ == phase::open && !std::exchange(is_beat_in_flight_, true);
}

heartbeat::action heartbeat::check(time_point now) noexcept
{
    if (phase_ == phase::closed)
        return action::none;
    if (liveness_.check(reply_count_, true) == remote::liveness::action::give_up)
        return action::disconnect;
    if (phase_ == phase::opening || is_beat_in_flight_ || now < next_beat_)
        return action::none;
    is_beat_in_flight_ = true;
    return action::beat;
}

} // namespace colock::inline v0::zookeeper::detail
