// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session/session_life.hpp"

#include <algorithm>
#include <utility>

namespace colock::zookeeper::detail {

using namespace std::chrono_literals;

namespace {

/// The number of the transaction that a write was carried out in; 0: the answer does not tell.
std::int64_t transaction_of(const reply& written) noexcept
{
    auto newest = std::max(written.stat.created_in, written.stat.modified_in);
    for (const auto& each : written.members)
        newest = std::max(newest, each.stat.modified_in);
    return newest;
}

} // namespace

session_life::session_life(std::chrono::milliseconds session_timeout,
    std::optional<std::chrono::milliseconds> server_tick, std::optional<std::chrono::milliseconds> smallest_timeout)
    : server_tick_(server_tick), timeout_(session_timeout), smallest_timeout_(smallest_timeout), heart_(terms())
{
}

std::chrono::milliseconds session_life::counted_timeout() const noexcept
{
    return std::min(timeout_, smallest_timeout_.value_or(timeout_));
}

heartbeat::terms session_life::terms() const noexcept
{
    const heartbeat::duration timeout = counted_timeout();
    const auto otherwise = std::min<heartbeat::duration>(2s, timeout / 2);
    return {.session_timeout = timeout, .server_tick = server_tick_ ? heartbeat::duration(*server_tick_) : otherwise};
}

bool session_life::is_short() const noexcept
{
    constexpr int least_ticks = 4;
    const auto agreed = terms();
    return agreed.session_timeout < least_ticks * agreed.server_tick;
}

session_life::change session_life::saw(zk_client::phase now, time_point before) noexcept
{
    const auto was = std::exchange(seen_, now);
    if (was == seen_)
        return change::none;
    if (seen_ == zk_client::phase::greeting)
        greeted_ = before;
    if (connected())
        return change::connected;
    if (was != zk_client::phase::connected)
        return change::none;
    heart_.lost();
    return change::suspended;
}

bool session_life::greeted(std::int64_t id, std::chrono::milliseconds timeout)
{
    const bool is_shorter = smallest_timeout_ && timeout < *smallest_timeout_;
    timeout_ = timeout;
    smallest_timeout_ = counted_timeout();
    id_ = id;
    heart_.opened(greeted_, terms());
    if (bound_ && is_shorter)
        bound_->end();
    return raise();
}

bool session_life::answered(const told_list& fresh, time_point now)
{
    bool proves = false;
    for (const auto& each : fresh) {
        if (each.what != told::kind::answer)
            continue;
        const auto& asked = static_cast<const request&>(each);
        // What a follower without its leader, or a leader without its followers, could not have answered.
        if (!asked.writes || asked.answer.what > status::bad_version)
            continue;
        heart_.answered(asked.sent, now);
        if (asked.answer.ok())
            newest_transaction_ = std::max(newest_transaction_, transaction_of(asked.answer));
        proves = true;
    }
    return !proves || !connected() || raise();
}

bool session_life::raise()
{
    const auto until = heart_.valid_until();
    const bool lives = bound_ && bound_->raise(until);
    const bool outlived = bound_ && !lives;
    if (!lives)
        bound_ = std::make_shared<session_bound>(until);
    return !outlived;
}

void session_life::end() noexcept
{
    seen_ = zk_client::phase::disconnected;
    heart_.lost();
    if (bound_)
        bound_->end();
}

} // namespace colock::zookeeper::detail
