// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session/heartbeat.hpp"

#include <algorithm>

namespace colock::zookeeper::detail {

namespace {

using namespace std::chrono_literals;

/// Number of checks and of beats per session timeout.
constexpr int checks_per_timeout = 24;
constexpr int beats_per_timeout = 6;

/// Limits in checks. A connect or a handshake may take a sixth of the timeout. A beat may take a third, in addition to
/// the sixth that passes before the beat.
constexpr remote::liveness::limits beat_limits{.before_first_data = checks_per_timeout / 6,
    .silence = checks_per_timeout / beats_per_timeout + checks_per_timeout / 3};

/// Maximum number of writes that are recorded in half a tick.
constexpr int writes_per_half_tick = 8;

} // namespace

heartbeat::heartbeat(terms agreed) noexcept : agreed_(agreed), liveness_(beat_limits) {}

heartbeat::duration heartbeat::check_interval() const noexcept
{
    return std::max<duration>(agreed_.session_timeout / checks_per_timeout, 1ms);
}

void heartbeat::on_connecting() noexcept
{
    phase_ = phase::opening;
    liveness_ = remote::liveness(beat_limits);
    reply_count_ = 0;
}

void heartbeat::on_connected(time_point sent, terms agreed)
{
    // With a shorter timeout or a longer tick, the same replies prove less, so the old result is not valid any more.
    if (agreed.session_timeout < agreed_.session_timeout || agreed.server_tick > agreed_.server_tick)
        valid_until_ = time_point::min();
    agreed_ = agreed;
    phase_ = phase::open;
    liveness_ = remote::liveness(beat_limits);
    reply_count_ = 1;
    is_beat_in_flight_ = false;
    next_beat_ = time_point::min();
    unconfirmed_.clear();
    // The handshake is a request to the leader, which restarts the session's timeout.
    prove(sent);
}

void heartbeat::on_disconnected() noexcept
{
    phase_ = phase::closed;
    unconfirmed_.clear();
}

void heartbeat::on_write_answered(time_point sent, time_point now)
{
    ++reply_count_;
    const auto until_ping = agreed_.server_tick / 2;
    while (!unconfirmed_.empty() && unconfirmed_.front().answered + until_ping <= sent) {
        prove(unconfirmed_.front().sent);
        unconfirmed_.pop_front();
    }
    if (unconfirmed_.empty() || sent - unconfirmed_.back().sent >= until_ping / writes_per_half_tick)
        unconfirmed_.push_back({sent, now});
}

void heartbeat::on_beat_ended(time_point now) noexcept
{
    is_beat_in_flight_ = false;
    next_beat_ = now + agreed_.session_timeout / beats_per_timeout;
}

heartbeat::action heartbeat::check(time_point now) noexcept
{
    if (phase_ == phase::closed)
        return action::none;
    if (liveness_.turn(reply_count_, true) == remote::liveness::action::give_up)
        return action::disconnect;
    if (phase_ == phase::opening || is_beat_in_flight_ || now < next_beat_)
        return action::none;
    is_beat_in_flight_ = true;
    return action::beat;
}

void heartbeat::prove(time_point sent) noexcept
{
    const auto margin = agreed_.session_timeout / 100 + 2ms;
    valid_until_ = std::max(valid_until_, sent + agreed_.session_timeout - agreed_.server_tick / 2 - margin);
}

} // namespace colock::zookeeper::detail
