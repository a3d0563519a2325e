// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/clock.hpp>
#include <colock/detail/export.hpp>
#include <colock/error.hpp>
#include <colock/lost_reason.hpp>
#include <colock/status.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace colock::inline v0 {

/// Counters of a locker since its construction, and its current numbers of locks and waiters.
struct locker_stats
{
    /// Number of create requests that ended: with an answer of the backend, or with an error. A request for several
    /// keys counts once for each key if it was granted or failed, and once if one of the keys was busy.
    std::uint64_t attempts = 0;
    /// Create requests that were granted. Each grant is counted later by `releases` or `losses`, and until then by
    /// `held` unless its lease has expired.
    std::uint64_t grants = 0;
    /// Attempts that found the lock busy.
    std::uint64_t busy = 0;
    /// Attempts after the first attempt of an acquire, without those that follow a wake-up.
    std::uint64_t retries = 0;
    /// Number of acquires that had to wait.
    std::uint64_t waits = 0;
    /// Total waiting time of those of these acquires that were granted.
    std::chrono::nanoseconds waited_total{0};
    /// The longest of these waiting times.
    std::chrono::nanoseconds waited_longest{0};
    /// Acquires whose retry policy ended, or a `try_acquire` that found the lock busy. This and the next three counters
    /// count the calls of observer::not_granted by their reason: once for each key of an `acquire_all`.
    std::uint64_t exhausted = 0;
    /// Acquires that were cancelled by the caller.
    std::uint64_t cancelled = 0;
    /// Acquires that ended because the locker was shut down, or the adapter's context was destroyed.
    std::uint64_t shut_down = 0;
    /// Acquires that ended with any other error, including rejected input.
    std::uint64_t failed = 0;
    /// Automatic renewals that succeeded.
    std::uint64_t renewals = 0;
    /// Renewals that failed, or had not been answered when the lease ended.
    std::uint64_t renewal_errors = 0;
    /// Number of losses by lost_reason, whether they are reported to a handle, to an observer or to a `with_lock`.
    /// `released` is not a loss, and its number is always 0.
    std::array<std::uint64_t, lost_reason_count> losses{};
    /// Locks that were released or detached by their holders, also if the release is finished in the background.
    std::uint64_t releases = 0;
    /// Acquires, releases and lost locks that were cleaned up in the background.
    std::uint64_t settled = 0;
    /// The part of `settled` for which the backend could not prove that nothing is held; the ttl of these locks has
    /// passed. Also counts the grants on masters of a quorum that could not be reached to remove them.
    std::uint64_t unproven = 0;
    /// Lost connections of the adapter that were established again, see adapter::reconnects().
    std::uint64_t reconnects = 0;

    /// Current number of held locks. An expired lock does not count, even if the loss has not been reported yet.
    std::uint64_t held = 0;
    /// Current number of acquires that wait.
    std::uint64_t waiting = 0;
    /// Current number of releases and cleanups that are in progress, including releases that a caller awaits.
    std::uint64_t settling = 0;

    /// Returns the number of losses with this reason.
    [[nodiscard]] std::uint64_t lost(lost_reason reason) const noexcept
    {
        return losses[static_cast<std::size_t>(reason)];
    }
};

/// A lock that a locker holds now.
struct held_lock
{
    /// The key.
    std::string key{};
    /// The id of its lock_group; empty for a single lock.
    std::string group{};
    /// Exclusive or shared.
    lock_mode mode = lock_mode::exclusive;
    /// The fencing token; 0 if the backend has none.
    std::uint64_t fence = 0;
    /// The ttl of the grant; 0: the lock is held until it is released.
    std::chrono::milliseconds ttl{0};
    /// Until the local deadline; absent for a lock without ttl.
    std::optional<std::chrono::nanoseconds> valid_for{};
};

/// An acquire of a locker that waits now.
struct waiting_acquire
{
    /// The key.
    std::string key{};
    /// Exclusive or shared.
    lock_mode mode = lock_mode::exclusive;
    /// When the call began.
    lease_clock::time_point since{};
    /// Place in this locker's queue of the key; 1: the first. Callers of other lockers are not counted.
    std::size_t place = 0;
};

/// Result of a group operation for one lock.
struct lock_report
{
    /// The key.
    std::string key{};
    /// The error of this lock; no error after a success.
    error_code status{};
    /// The status of the lock before the operation, as far as it is known. For a lock of this handle it comes from the
    /// handle, for a lock of another handle from the backend.
    lock_status before{};
};

/// The work that `shutdown` could not complete before its deadline.
struct COLOCK_EXPORT shutdown_report
{
    /// Keys of locks whose `with_lock` bodies still run. These locks are left to their ttl.
    std::vector<std::string> still_running{};
    /// Keys whose release, cleanup or acquire has not been answered. After an unanswered acquire, a grant may still
    /// have to be released. These keys are free after their ttl at the latest.
    std::vector<std::string> unsettled{};
    /// Number of cleanups that ended without proof, since the construction of the locker.
    std::uint64_t unproven = 0;
    /// Number of calls of other threads into a backend that answers at once (memory), which have not returned yet. A
    /// lock that is granted to such a call is released when the call returns.
    std::uint64_t unfinished_calls = 0;

    /// Returns whether all work was completed, apart from cleanups without proof.
    [[nodiscard]] bool clean() const noexcept
    {
        return still_running.empty() && unsettled.empty() && unfinished_calls == 0;
    }
};

} // namespace colock::inline v0
