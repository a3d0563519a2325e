// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/deferred_actions.hpp"
#include "core/state/lock_record.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace colock::inline v0::detail {

/// The claims that are being released: ended locks, and acquires that were given up. `locker_stats::settling` is their
/// number. A claim leaves when the backend has confirmed that nothing of it is left, when `release_retries` allows no
/// other attempt, or when a shutdown gives it up.
///
/// Thread safety: guarded by the mutex of the core.
class pending_releases
{
public:
    explicit pending_releases(core& owner) : core_(owner) {}
    pending_releases(const pending_releases&) = delete;
    pending_releases& operator=(const pending_releases&) = delete;

    /// Adds a claim that has begun to end. This list owns a reference to it from now on.
    void add(lock_record& record);
    /// Removes a claim that has ended.
    void remove(lock_record& record, deferred_actions& actions);
    /// Releases the claim as soon as none of its operations is in flight: hands it over to the next waiter, or releases
    /// it in the backend.
    void send_release(lock_record& record, deferred_actions& actions);
    void on_released(lock_record& record, release_outcome&& outcome, deferred_actions& actions);
    /// Keeps the core alive until no claim is left here. Called before the last owner of the core may be destroyed.
    void keep_core_until_all_released(const lock_record& record);

    /// Number of releases whose call of the backend has not returned yet. Counts only a backend that answers inside the
    /// call; other threads are inside these calls.
    [[nodiscard]] unsigned calls_in_flight() const noexcept;
    /// Ends all claims now, without a proof. Those that `calls_in_flight` counts end when their calls return.
    void give_up(deferred_actions& actions);
    /// Calls `give_up`, and returns the keys of the claims that this and earlier calls of this function have ended.
    const std::vector<std::string>& give_up_and_list_keys(deferred_actions& actions);

    [[nodiscard]] bool empty() const noexcept { return ending_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

private:
    /// Whether `calls_in_flight` counts the claim.
    [[nodiscard]] bool is_inside_call(const lock_record& record) const noexcept;
    void retry_later(lock_record& record, deferred_actions& actions);

    core& core_;
    /// The core, from `keep_core_until_all_released` or the first retry until no claim is left.
    std::shared_ptr<core> kept_;
    /// The list owns a reference to each of its members.
    record_list ending_;
    std::size_t size_ = 0;
    /// Keys of the claims that shutdowns have given up.
    std::vector<std::string> given_up_keys_;
};

} // namespace colock::inline v0::detail
