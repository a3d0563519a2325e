// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/deferred_actions.hpp"
#include "core/state/lock_record.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace colock::inline v0::detail {

/// The claims that are being released: ended locks, and acquires that were given up. A claim leaves when the backend
/// has confirmed that nothing of it is left, when the time for retries is over, or when a shutdown gives it up.
///
/// Thread safety: guarded by the mutex of the core.
class pending_releases
{
public:
    using time_point = lease_clock::time_point;

    explicit pending_releases(core& owner) : core_(owner) {}
    pending_releases(const pending_releases&) = delete;
    pending_releases& operator=(const pending_releases&) = delete;

    /// Records that a request with this TTL is about to be sent, or was sent.
    static void raise_latest_expiry(lock_record& claim, std::chrono::milliseconds ttl) noexcept;
    /// Adds a claim that has begun to end. This list owns a reference to it from now on.
    void add(lock_record& record);
    /// Removes a claim that has ended.
    void remove(lock_record& record, deferred_actions& actions);
    /// Releases the claim as soon as none of its operations is in flight: hands it over to the next waiter, or releases
    /// it in the backend.
    void send_release(lock_record& record, deferred_actions& actions);
    void on_released(lock_record& record, release_outcome&& outcome, deferred_actions& actions);
    /// Keeps the core alive until no claim is left here. Called before the last owner of the core may be destroyed.
    void keep_core_until_empty(const lock_record& record);

    /// Number of claims that other threads are releasing inside a backend that answers at once.
    [[nodiscard]] unsigned calls_in_flight() const noexcept;
    /// Ends all claims now, unproven, except those that `calls_in_flight` counts: their calls end by themselves.
    void give_up(deferred_actions& actions);
    /// Like `give_up`, and returns the keys of all claims that this function has given up so far.
    const std::vector<std::string>& give_up_and_list_keys(deferred_actions& actions);

    [[nodiscard]] bool empty() const noexcept { return ending_.empty(); }
    /// Notified when something has ended that a shutdown waits for, here or in another part of the core.
    [[nodiscard]] condition& drained() noexcept { return drained_; }

private:
    /// Whether another thread is releasing the claim inside a backend that answers at once.
    [[nodiscard]] bool is_inside_call(const lock_record& record) const noexcept;
    void retry_later(lock_record& record, deferred_actions& actions);
    [[nodiscard]] time_point release_deadline(const lock_record& record) const noexcept;

    core& core_;
    /// The core, from `keep_core_until_empty` or the first retry until no claim is left.
    std::shared_ptr<core> kept_;
    /// The list owns a reference to each of its members.
    record_list ending_;
    /// Keys of the claims that shutdowns have given up.
    std::vector<std::string> given_up_keys_;
    condition drained_;
};

} // namespace colock::inline v0::detail
