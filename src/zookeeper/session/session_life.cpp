// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session/session_life.hpp"

#include <algorithm>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

using namespace std::chrono_literals;

namespace {

/// Returns the number of the transaction that carried out a write; 0 if the reply does not contain it.
std::int64_t transaction_of(const reply& written) noexcept
{
    auto newest = std::max(written.stat.created_in, written.stat.modified_in);
    for (const auto& each : written.members)
        newest = std::max(newest, each.stat.modified_in);
    return newest;
}

} // namespace

session_life::session_life(std::chrono::milliseconds session_timeout, std::chrono::milliseconds connect_timeout,
    std::optional<std::chrono::milliseconds> server_tick, std::optional<std::chrono::milliseconds> smallest_timeout)
    : server_tick_(server_tick), timeout_(session_timeout), smallest_timeout_(smallest_timeout),
      heartbeat_(terms(), connect_timeout)
{
}

std::chrono::milliseconds session_life::counted_timeout() const noexcept
{
    return std::min(timeout_, smallest_timeout_.value_or(timeout_));
}

session_terms session_life::terms() const noexcept
{
    const lease_clock::duration timeout = counted_timeout();
    const auto default_tick = std::min<lease_clock::duration>(2s, timeout / 2);
    return {.timeout = timeout, .server_tick = server_tick_ ? lease_clock::duration(*server_tick_) : default_tick};
}

bool session_life::has_few_ticks() const noexcept
{
    constexpr int min_ticks = 4;
    const auto current_terms = terms();
    return current_terms.timeout < min_ticks * current_terms.server_tick;
}

session_life::change session_life::note_phase(zk_client::phase current, time_point before) noexcept
{
    if (phase_ == zk_client::phase::expired)
        return change::none;
    const auto previous = std::exchange(phase_, current);
    if (previous == phase_)
        return change::none;
    if (phase_ == zk_client::phase::greeting)
        greeting_sent_at_ = before;
    if (connected())
        return change::connected;
    if (previous != zk_client::phase::connected)
        return change::none;
    heartbeat_.on_disconnected();
    return change::suspended;
}

void session_life::note_greeting(std::int64_t id, std::chrono::milliseconds timeout)
{
    const bool is_shorter = smallest_timeout_ && timeout < *smallest_timeout_;
    timeout_ = timeout;
    smallest_timeout_ = counted_timeout();
    is_unverified_ = true;
    id_ = id;
    heartbeat_.on_connected(greeting_sent_at_, terms());
    if (is_shorter)
        end_lease();
}

bool session_life::note_verified()
{
    is_unverified_ = false;
    return extend_lease();
}

bool session_life::note_reports(const driver_report_list& reports, time_point now)
{
    bool is_proven = false;
    for (const auto& each : reports) {
        if (each.type != driver_report::kind::answer)
            continue;
        const auto& answered_request = static_cast<const request&>(each);
        if (answered_request.answer.outcome == status::ended)
            phase_ = zk_client::phase::expired;
        // A follower without its leader, or a leader without its followers, could have given the other replies.
        if (!answered_request.is_write || answered_request.answer.outcome > status::bad_version)
            continue;
        heartbeat_.on_write_answered(answered_request.sent_at, now);
        if (answered_request.answer.ok())
            newest_transaction_ = std::max(newest_transaction_, transaction_of(answered_request.answer));
        is_proven = true;
    }
    return !is_proven || !connected() || extend_lease();
}

bool session_life::extend_lease()
{
    if (is_unverified_)
        return true;
    const auto until = heartbeat_.valid_until();
    const bool is_extended = lease_ && lease_->extend(until);
    const bool has_lease_ended = lease_ && !is_extended;
    if (!is_extended)
        lease_ = std::make_shared<session_lease>(until);
    return !has_lease_ended;
}

void session_life::end() noexcept
{
    phase_ = zk_client::phase::disconnected;
    heartbeat_.on_disconnected();
    end_lease();
}

void session_life::end_lease() noexcept
{
    if (lease_)
        lease_->end();
}

} // namespace colock::inline v0::zookeeper::detail
