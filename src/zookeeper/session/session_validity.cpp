// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session/session_validity.hpp"

#include <algorithm>

namespace colock::inline v0::zookeeper::detail {

namespace {

using namespace std::chrono_literals;

/// Maximum number of writes that are recorded in half a tick.
constexpr int writes_per_half_tick = 8;

} // namespace

void session_validity::on_connected(time_point sent, session_terms agreed)
{
    // With a shorter timeout or a longer tick, the same replies prove less, so the old result is not valid any more.
    if (agreed.timeout < agreed_.timeout || agreed.server_tick > agreed_.server_tick)
        valid_until_ = time_point::min();
    agreed_ = agreed;
    unconfirmed_.clear();
    // The handshake is a request to the leader, which restarts the session's timeout.
    prove(sent);
}

void session_validity::on_write_answered(time_point sent, time_point now)
{
    const auto until_ping = agreed_.server_tick / 2;
    while (!unconfirmed_.empty() && unconfirmed_.front().answered + until_ping <= sent) {
        prove(unconfirmed_.front().sent);
        unconfirmed_.pop_front();
    }
    if (unconfirmed_.empty() || sent - unconfirmed_.back().sent >= until_ping / writes_per_half_tick)
        unconfirmed_.push_back({sent, now});
}

void session_validity::prove(time_point sent) noexcept
{
    const auto margin = agreed_.timeout / 100 + 2ms;
    valid_until_ = std::max(valid_until_, sent + agreed_.timeout - agreed_.server_tick / 2 - margin);
}

} // namespace colock::inline v0::zookeeper::detail
