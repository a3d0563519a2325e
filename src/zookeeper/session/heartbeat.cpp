// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session/heartbeat.hpp"

#include <algorithm>

namespace colock::zookeeper::detail {

namespace {

using namespace std::chrono_literals;

/// Of a session's timeout.
constexpr int turns = 24;
constexpr int beats = 6;

/// A connect or a handshake: a sixth of the timeout. A beat: a third, after the sixth that it came after.
constexpr remote::liveness::limits patience{.greeting = turns / 6, .silence = turns / beats + turns / 3};

/// Kept writes are at least this part of half a tick apart.
constexpr int distance = 8;

} // namespace

heartbeat::heartbeat(terms agreed) noexcept : agreed_(agreed), life_(patience) {}

heartbeat::duration heartbeat::pace() const noexcept
{
    return std::max<duration>(agreed_.session_timeout / turns, 1ms);
}

void heartbeat::opening() noexcept
{
    phase_ = phase::opening;
    life_ = remote::liveness(patience);
    heard_ = 0;
}

void heartbeat::opened(time_point sent, terms agreed)
{
    // What the terms from before have proven, these need not keep.
    if (agreed.session_timeout < agreed_.session_timeout || agreed.server_tick > agreed_.server_tick)
        valid_until_ = time_point::min();
    agreed_ = agreed;
    phase_ = phase::open;
    life_ = remote::liveness(patience);
    heard_ = 1;
    beats_ = false;
    beat_due_ = time_point::min();
    unconfirmed_.clear();
    // The server asks the leader, who begins to count anew.
    prove(sent);
}

void heartbeat::lost() noexcept
{
    phase_ = phase::closed;
    unconfirmed_.clear();
}

void heartbeat::answered(time_point sent, time_point now)
{
    ++heard_;
    const auto until_told = agreed_.server_tick / 2;
    while (!unconfirmed_.empty() && unconfirmed_.front().answered + until_told <= sent) {
        prove(unconfirmed_.front().sent);
        unconfirmed_.pop_front();
    }
    if (unconfirmed_.empty() || sent - unconfirmed_.back().sent >= until_told / distance)
        unconfirmed_.push_back({sent, now});
}

void heartbeat::beat_ended(time_point now) noexcept
{
    beats_ = false;
    beat_due_ = now + agreed_.session_timeout / beats;
}

heartbeat::action heartbeat::turn(time_point now) noexcept
{
    if (phase_ == phase::closed)
        return action::none;
    if (life_.turn(heard_, true) == remote::liveness::action::give_up)
        return action::cut;
    if (phase_ == phase::opening || beats_ || now < beat_due_)
        return action::none;
    beats_ = true;
    return action::beat;
}

void heartbeat::prove(time_point sent) noexcept
{
    const auto margin = agreed_.session_timeout / 100 + 2ms;
    valid_until_ = std::max(valid_until_, sent + agreed_.session_timeout - agreed_.server_tick / 2 - margin);
}

} // namespace colock::zookeeper::detail
