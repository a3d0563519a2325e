// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/cleanup_queue.hpp"
#include "core/state/deferred_actions.hpp"
#include "core/state/shard.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

namespace colock::inline v0::detail {

/// The held locks, from the grant to the end of the lease: renewal, stopping of bodies, and loss.
///
/// Thread safety: guarded by the shard's mutex.
class lease_table
{
public:
    using time_point = lease_clock::time_point;

    lease_table(shard& owner, cleanup_queue& cleanup) : shard_(owner), cleanup_(cleanup) {}
    lease_table(const lease_table&) = delete;
    lease_table& operator=(const lease_table&) = delete;

    /// Sets the object that is notified when a session that carries leases ends.
    void set_owner(std::weak_ptr<session_lease::watcher> owner) { owner_ = std::move(owner); }

    /// Grants the lock to `wanted`, and removes it from the queue of its key.
    void grant(record& wanted, std::uint64_t fence, deferred_actions& actions);
    /// Applies what the adapter or a break has reported about the grant before the core has processed it.
    void apply_early_reports(record& held, deferred_actions& actions);
    /// Asks the backend whether the lease still exists, as soon as no other operation of the lock is in flight.
    void verify(record& held, deferred_actions& actions);
    /// Adds a lock that is not in a queue, and whose coroutine is not suspended.
    void hold(record& wanted, std::uint64_t fence);
    /// Updates the statistics when an acquire that began at `started` has ended its wait.
    void end_wait(time_point started);
    /// Marks a lock as granted, because all locks of its group are held now. The requested options apply from now on.
    void hand_out(record& held, bool renews, std::chrono::milliseconds max_hold, time_point now);
    /// Ends the lease, and begins to release the lock. Reports a loss, unless the lock was released or
    /// its grant was not reported.
    void end_lease(record& held, lost_reason reason, deferred_actions& actions);
    /// Ends the lock in this process without releasing it in the backend, because another holder takes it over with the
    /// ticket.
    void detach(record& held, deferred_actions& actions);
    /// Removes a lock that is released by the quick path. Its record is in no list afterwards.
    void remove(record& held) { held_.erase(held_.iterator_to(held)); }

    /// Sets the timer again. Must be called after each change of `record::plan` or of the times that it uses.
    void reschedule(record& held);
    /// Stores for the observer, if there is one, how long the lock was held until now.
    void note_hold_time(record& held) const noexcept;
    /// Carries out the actions that the plan requires now. Returns false if the lease has ended.
    [[nodiscard]] bool follow_plan(record& held, time_point now, deferred_actions& actions);
    void stop_body(record& held, lost_reason why, deferred_actions& actions);
    /// Ends one more lock because of a shutdown, or stops its body. Returns false if all locks have been processed.
    /// Must be called only when no more locks are granted.
    [[nodiscard]] bool shut_down_next(deferred_actions& actions);
    void start_renewal(record& held, time_point now, deferred_actions& actions);
    /// Records that a request with this TTL is about to be sent. A TTL that is shorter than the current one applies at
    /// once.
    void apply_requested_ttl(record& held, std::chrono::milliseconds ttl, deferred_actions& actions);
    void on_extended(record& subject, extend_outcome&& outcome, deferred_actions& actions);

    /// Returns why the lease has ended, if it has. A loss that is reported to the caller is also counted and reported
    /// to the observer.
    [[nodiscard]] std::optional<lost_reason> report_loss(record& held, deferred_actions& actions);
    /// Returns the reason why a lease that is no longer valid has ended.
    [[nodiscard]] static lost_reason end_reason_of(const record& held, time_point now) noexcept;

    /// Reports to the observer that every lease may end soon, because the backend cannot be reached. Leases that are
    /// renewed become due for renewal now: the timer starts the renewals in batches.
    void on_contact_lost(time_point now);
    void on_session_ended(const session_lease& session);

    /// Returns the parameters that determine the lease of `claim`, whose last request asked for `ttl`.
    [[nodiscard]] lease_request request_of(const record& claim, std::chrono::milliseconds ttl) const noexcept;

    [[nodiscard]] record_list& all() noexcept { return held_; }

private:
    /// Whether the end of the lease must be detected even if no caller waits for it. A lock of a group may have been
    /// extended through the group's id in another process. The backend then keeps the lock after this lease has ended,
    /// so the lock must be released.
    [[nodiscard]] bool is_watched(const record& held) const noexcept;
    void watch_session(record& held);
    /// Wakes the waiters of a lease that has ended.
    void notify_end(record& held, wake_list& wakes);
    /// Counts a lock that its holder has given up, and reports it if it is that of a leader.
    void count_release(record& held);
    /// Reports the grant to the observer, if there is one.
    void report_grant(record& held, time_point now);

    shard& shard_;
    cleanup_queue& cleanup_;
    std::weak_ptr<session_lease::watcher> owner_;
    /// The session that was watched last, so that it is not watched again for each of its leases.
    std::weak_ptr<session_lease> session_;
    record_list held_;
};

} // namespace colock::inline v0::detail
