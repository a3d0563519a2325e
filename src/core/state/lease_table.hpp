// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/cleanup_queue.hpp"
#include "core/state/deferred_actions.hpp"
#include "core/state/shard.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

namespace colock::detail {

/// What is held: from the grant to its end, renewed meanwhile, told to stop, and lost.
///
/// Thread safety: guarded by the shard's mutex.
class lease_table
{
public:
    using time_point = lease_clock::time_point;

    lease_table(shard& of, cleanup_queue& ends) : shard_(of), cleanup_(ends) {}
    lease_table(const lease_table&) = delete;
    lease_table& operator=(const lease_table&) = delete;

    /// Who is to be told of the sessions that carry leases.
    void owned_by(std::weak_ptr<session_bound::watcher> owner) { owner_ = std::move(owner); }

    /// Out of its key's queue, if it stood in one.
    void grant(record& wanted, std::uint64_t fence, deferred_actions& actions);
    /// Applies what the adapter or a break has reported about the grant before the core has processed it.
    void hear_of_grant(record& held, deferred_actions& actions);
    /// Asks the backend whether the lease still stands, as soon as nothing else is under way.
    void verify(record& held, deferred_actions& actions);
    /// One that nobody waits for.
    void hold(record& wanted, std::uint64_t fence);
    /// Ends the wait in the statistics of an acquire that began at `started`.
    void end_wait(time_point started);
    /// A lock of a group that is complete now: from here on it counts as granted, and what was asked for applies.
    void hand_out(record& held, bool renews, std::chrono::milliseconds max_hold, time_point now);
    void begin_end(record& held, lost_reason reason, deferred_actions& actions);
    /// It ends here, but stands in the backend: whoever has its ticket goes on with it.
    void leave_standing(record& held, deferred_actions& actions);
    /// One that is released without further ado: it is in no list from now on.
    void take_out(record& held) { held_.erase(held_.iterator_to(held)); }

    /// Sets the timer after anything that the plan depends on has changed.
    void reschedule(record& held);
    /// Does what is due by the plan; false if the lease has ended.
    [[nodiscard]] bool follow_plan(record& held, time_point now, deferred_actions& actions);
    void stop_body(record& held, lost_reason why, deferred_actions& actions);
    /// Tells one more of the shutdown, once no more are granted; false if all have been told.
    [[nodiscard]] bool shut_down_next(deferred_actions& actions);
    void start_renewal(record& held, time_point now, deferred_actions& actions);
    /// A request with that ttl is about to be sent: a shorter one counts at once.
    void expect(record& held, std::chrono::milliseconds ttl, deferred_actions& actions);
    void on_extended(record& subject, extend_outcome&& outcome, deferred_actions& actions);

    /// What is told to the caller as a loss is one for everybody: it is counted, and the observer hears of it.
    [[nodiscard]] std::optional<lost_reason> report_loss(record& held, deferred_actions& actions);
    /// Why a lease that is no more has ended.
    [[nodiscard]] static lost_reason end_of(const record& held, time_point now) noexcept;

    /// Tells observers that every lease may end soon, because the backend cannot be reached. Leases that are renewed
    /// are due for renewal now: the timer starts the renewals in parts.
    void lost_contact(time_point now);
    void session_ended(const session_bound& session);

    /// The request that was sent last for `claim`, which asked for that ttl, as its lease is to be counted now.
    [[nodiscard]] lease_request request_of(const record& claim, std::chrono::milliseconds ttl) const noexcept;

    [[nodiscard]] record_list& all() noexcept { return held_; }

private:
    /// Whether the end of the lease is noticed even if nobody waits for it. A lock of a group may have been extended by
    /// the group's id in another process: the backend keeps it for longer than its handle does, which has to give it
    /// back.
    [[nodiscard]] bool is_watched(const record& held) const noexcept;
    void watch_session(record& held);

    shard& shard_;
    cleanup_queue& cleanup_;
    std::weak_ptr<session_bound::watcher> owner_;
    /// The one that is watched already.
    std::weak_ptr<session_bound> session_;
    record_list held_;
};

} // namespace colock::detail
