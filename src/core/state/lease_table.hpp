// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/deferred_actions.hpp"
#include "core/state/lock_record.hpp"
#include "core/state/pending_releases.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

namespace colock::inline v0::detail {

/// The held locks, from the grant to the end of the lease: renewal, cancellation of functions passed to `with_lock`,
/// and loss.
///
/// Thread safety: guarded by the mutex of the core.
class lease_table
{
public:
    using time_point = lease_clock::time_point;

    explicit lease_table(core& owner) : core_(owner) {}
    lease_table(const lease_table&) = delete;
    lease_table& operator=(const lease_table&) = delete;

    /// Adds a lock that was granted.
    void add(lock_record& record);
    /// Removes a lock. Its record is in no list afterwards.
    void remove(lock_record& record) { held_.erase(held_.iterator_to(record)); }
    /// Asks the backend whether the lease still exists, as soon as no other operation of the lock is in flight.
    void query(lock_record& record, deferred_actions& actions);

    /// Sets the timer again. Must be called after each change of `lease_state().plan` or of the times that it uses.
    void reschedule(lock_record& record);
    /// Carries out the actions that the plan requires now. Returns false if the lease has ended.
    [[nodiscard]] bool follow_plan(lock_record& record, time_point now, deferred_actions& actions);
    void stop_body(lock_record& record, lost_reason reason, deferred_actions& actions);
    /// Ends one more lock because of a shutdown, or stops its body. Returns false if all locks have been processed.
    /// Must be called only when no more locks are granted.
    [[nodiscard]] bool shut_down_next(deferred_actions& actions);
    void start_renewal(lock_record& record, time_point now, deferred_actions& actions);
    /// Records that a request with this TTL is about to be sent. A TTL that is shorter than the current one applies at
    /// once.
    void apply_requested_ttl(lock_record& record, std::chrono::milliseconds ttl, deferred_actions& actions);
    void on_extended(lock_record& record, extend_outcome&& outcome, deferred_actions& actions);
    /// Called when a query or an export was answered.
    /// \param is_lost the lease has ended, according to the answer or to the clock
    void on_queried(lock_record& record, bool is_lost, deferred_actions& actions);

    /// Ends the lease if its time is over, or if the body has to stop. Returns the reason if the lease has ended. A
    /// loss is also counted and reported to the observer.
    [[nodiscard]] std::optional<lost_reason> end_if_lost(lock_record& record, deferred_actions& actions);
    /// Returns the reason why a lease that is no longer valid has ended.
    [[nodiscard]] static lost_reason end_reason_of(const lock_record& record, time_point now) noexcept;

    /// Reports to the observer that every lease may end soon, because the backend cannot be reached. Leases that are
    /// renewed become due for renewal now: the timer starts the renewals in batches.
    void on_contact_lost(time_point now);
    void on_session_ended(const session_lease& session);

    /// Returns the parameters from which the local expiry of `record` is computed. `ttl` is that of the last request; a
    /// smaller TTL of a late request replaces it.
    [[nodiscard]] lease_request lease_request_for(
        const lock_record& record, std::chrono::milliseconds ttl) const noexcept;

    [[nodiscard]] record_list& all() noexcept { return held_; }

private:
    /// Whether the end of the lease must be detected even if no caller waits for it. Another process may have
    /// extended a lock of a group by the group's id. The backend then keeps it after this lease, so it must be
    /// released.
    [[nodiscard]] bool is_watched(const lock_record& record) const noexcept;
    void watch_session(lock_record& record);

    core& core_;
    /// The session that was watched last, so that it is not watched again for each of its leases.
    std::weak_ptr<session_lease> session_;
    record_list held_;
};

} // namespace colock::inline v0::detail
