// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/lock.hpp>

#include "core/operations/acquire_guard.hpp"
#include "core/state/core.hpp"
#include "core/state/lock_record.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace colock::inline v0::detail::operations {

/// One lock of a group, from the first attempt until the group is complete or given up.
struct requested_lock
{
    lock_record::ptr record;
    acquire_guard on_exit;
    /// The expiry that the lease had when its renewal was sent by `begin_renewals`; zero if none was sent.
    lease_clock::time_point renewed_from{};

    explicit requested_lock(lock_record::ptr claim) : record(std::move(claim)), on_exit(record)
    {
        on_exit.reports = false;
        on_exit.enter_slow_path();
    }
};

/// The locks of a group that is not complete yet: the loss and the renewal of their leases, the completion, and the
/// release of all of them.
///
/// Thread safety: none; belongs to one coroutine.
class incomplete_group
{
public:
    explicit incomplete_group(std::shared_ptr<core> self) : core_(std::move(self)) {}
    incomplete_group(const incomplete_group&) = delete;
    incomplete_group& operator=(const incomplete_group&) = delete;

    void add(lock_record::ptr record);
    /// Returns the locks in the order in which they were added. They do not move in memory.
    [[nodiscard]] std::deque<requested_lock>& all() noexcept { return all_; }
    [[nodiscard]] requested_lock& first() noexcept { return all_.front(); }

    /// Returns the condition that is notified when a lease has ended or a renewal was answered.
    [[nodiscard]] condition& progress() noexcept { return progress_; }
    /// \param next the claim that the coroutine waits for from now on; null: it waits for `progress`
    void set_awaited_claim(lock_record* next);
    /// Whether a lease has ended, so that the group has to start again.
    [[nodiscard]] bool has_lost() const;

    /// Renews the leases that have become short, once each.
    /// \param until time at which `progress` is notified at the latest
    /// \param seen is set to the version of `progress` that was checked
    /// \returns whether a renewal is still unanswered
    [[nodiscard]] bool begin_renewals(lease_clock::time_point until, std::uint32_t& seen);
    /// Makes all locks normal held ones, with the options that their caller has requested.
    /// \param waits whether the group is counted among the waiting acquires; set to false if its wait ends
    /// \param started time at which the acquire has begun
    /// \returns false, without any effect, if the group has to start again
    [[nodiscard]] bool complete(bool& waits, lease_clock::time_point started);
    /// Returns the locks of a complete group.
    [[nodiscard]] std::vector<lock> take_locks();
    /// Releases all locks in the background, newest first.
    void release_all() noexcept;

private:
    /// Whether less time is left than two thirds of the TTL, or than the locker's `minimum_validity`.
    [[nodiscard]] bool needs_renewal(const requested_lock& member, lease_clock::time_point now) const;
    /// Applies the same requirement as to a grant that arrives from a backend whose answers take time.
    [[nodiscard]] bool is_long_enough(const requested_lock& member, lease_clock::time_point now) const;

    const std::shared_ptr<core> core_;
    /// Renewal and `max_hold` that apply to the locks when the group is complete.
    bool renews_ = false;
    std::chrono::milliseconds max_hold_{0};
    group_progress progress_;
    std::deque<requested_lock> all_;
};

} // namespace colock::inline v0::detail::operations
