// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session/session_validity.hpp"

#include <algorithm>

namespace colock::inline v0::zookeeper::detail {

namespace {

using namespace std::chrono_literals;

/// Maximum number of writes that are recorded in half a tick.
constexpr int writes_per_half_tick = 8;

} // namespace

void session_validity::on_connected(time_point sent_at, session_terms terms)
{
    // With a shorter timeout or a longer tick, the same replies prove less, so the old result is not valid any more.
    if (terms.timeout < terms_.timeout || terms.server_tick > terms_.server_tick)
        valid_until_ = time_point::min();
    terms_ = terms;
    unconfirmed_.clear();
    // The handshake is a request to the leader, which restarts the session's timeout.
    prove(sent_at);
}

void session_validity::on_write_answered(time_point sent_at, time_point now)
{
    const auto until_ping = terms_.server_tick / 2;
    while (!unconfirmed_.empty() && unconfirmed_.front().answered_at + until_ping <= sent_at) {
        prove(unconfirmed_.front().sent_at);
        unconfirmed_.pop_front();
    }
    if (unconfirmed_.empty() || sent_at - unconfirmed_.back().sent_at >= until_ping / writes_per_half_tick)
        unconfirmed_.push_back({sent_at, now});
}

void session_validity::prove(time_point sent_at) noexcept
{
    const auto margin = terms_.timeout / 100 + 2ms;
    valid_until_ = std::max(valid_until_, sent_at + terms_.timeout - terms_.server_tick / 2 - margin);
}

} // namespace colock::inline v0::zookeeper::detail
