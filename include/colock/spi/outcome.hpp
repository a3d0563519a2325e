// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/clock.hpp>
#include <colock/detail/export.hpp>
#include <colock/error.hpp>
#include <colock/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace colock::inline v0 {

/// Describes why an operation failed. The meaning of `code` for the operation:
/// - `errc::unavailable`: the operation was certainly not carried out, and may be tried again.
/// - `errc::outcome_unknown`: the request was sent but not answered. It may have been carried out, or may be carried
///   out later.
/// - any other code: the operation was refused, and would be refused again.
struct failure
{
    /// Says what the caller can rely on, see above.
    errc code = errc::outcome_unknown;
    /// The error code of the driver or the server, if there is one.
    error_code cause{};
    /// Description of the failure. Contains neither credentials nor tokens.
    std::string detail{};
};
/// Never null in the outcome of a failed operation. The core treats null as `errc::outcome_unknown`.
using failure_ptr = std::shared_ptr<const failure>;
/// Makes a failure.
COLOCK_EXPORT [[nodiscard]] failure_ptr make_failure(errc code, std::string detail = {}, error_code cause = {});

/// The answer to a create.
enum class create_status : unsigned char
{
    /// The claim holds the lock.
    granted,
    /// Another holder excludes the claim.
    busy,
    /// There is no answer, or the backend refused the request; `error` says why.
    failed,
};
/// Outcome of a request to create a claim.
struct create_outcome
{
    /// The answer.
    create_status status = create_status::busy;
    /// Granted: the fencing token; 0 if the backend has none.
    std::uint64_t fence = 0;
    /// Busy: the time until the holder's grant expires, if known; else zero. If there are several holders, the earliest
    /// of these times is always correct. An expiry wakes no waiter, so the core tries again after this time at the
    /// latest. A backend without events may specify a shorter time after which to try again.
    lease_clock::duration retry_after{0};
    /// Busy: the owner of the conflicting lock, for messages; may be empty.
    std::string holder{};
    /// Busy: the host of this owner, for messages; may be empty.
    std::string holder_host{};
    /// Failed: the reason.
    failure_ptr error{};

    /// Makes the outcome of a grant with this fencing token.
    [[nodiscard]] static create_outcome granted(std::uint64_t fence)
    {
        create_outcome result;
        result.status = create_status::granted;
        result.fence = fence;
        return result;
    }
    /// Makes the outcome of a busy lock.
    [[nodiscard]] static create_outcome busy(
        lease_clock::duration retry_after = {}, std::string holder = {}, std::string holder_host = {})
    {
        create_outcome result;
        result.retry_after = retry_after;
        result.holder = std::move(holder);
        result.holder_host = std::move(holder_host);
        return result;
    }
    /// Makes the outcome of a failure.
    [[nodiscard]] static create_outcome failed(failure_ptr error)
    {
        create_outcome result;
        result.status = create_status::failed;
        result.error = std::move(error);
        return result;
    }
};

/// The guarantee of a release that has not failed.
enum class release_guarantee : unsigned char
{
    /// The lock that was granted is released. An earlier request that was lost may still take effect.
    released,
    /// The claim holds nothing, waits in no queue, and never will: no earlier request takes effect any more, even if it
    /// arrives late.
    settled,
};

/// The answer to a release.
enum class release_status : unsigned char
{
    /// The lock of this claim was removed.
    released,
    /// The backend stored no lock of this claim: it had expired, was taken, or was never granted.
    not_held,
    /// There is no answer, or the backend refused the request; `error` says why.
    failed,
};
/// Outcome of a request to release a claim.
struct release_outcome
{
    /// The answer.
    release_status status = release_status::released;
    /// Failed: the reason.
    failure_ptr error{};
    /// Other lockers wait for this release. The locker's own waiters let them go first. Ignored with
    /// `capabilities::fifo`.
    bool others_wait = false;
};

/// The answer to an extension.
enum class extend_status : unsigned char
{
    /// The lock now expires after the requested ttl.
    extended,
    /// The claim does not hold the lock any more.
    not_held,
    /// There is no answer, or the backend refused the request; `error` says why.
    failed,
};
/// Outcome of a request to extend a claim.
struct extend_outcome
{
    /// The answer.
    extend_status status = extend_status::extended;
    /// Failed: the reason.
    failure_ptr error{};
};

/// Outcome of a query for whether a claim holds the lock.
struct valid_outcome
{
    /// The claim holds the lock; meaningless with an error.
    bool valid = false;
    /// Null, or the reason for a failure.
    failure_ptr error{};
};

/// Outcome of the export of a ticket.
struct export_outcome
{
    /// The data of the ticket; meaningless with an error.
    std::string ticket{};
    /// Null, or the reason for a failure.
    failure_ptr error{};
};

/// Outcome of a release that passes the lock to another claim.
struct hand_over_outcome
{
    /// Outcome for the claim that was released.
    release_outcome released{};
    /// Outcome for the claim that was created.
    create_outcome created{};
};

/// An operation on the locks that a listing finds.
enum class listing_action : unsigned char
{
    /// Returns live locks. Changes nothing.
    list,
    /// Removes the live locks of one key, and returns them.
    break_key,
    /// Removes expired locks, and returns them.
    purge,
};
/// A request for locks of any holder.
struct listing_request
{
    /// Whether the locks are listed, broken or purged.
    listing_action action = listing_action::list;
    /// A list may return more locks than those that match, because colock removes the others. A break has a key, and no
    /// other condition. A purge has no condition.
    colock::filter filter{};
    /// Empty for the first page or step, otherwise the `next` of the one before. Always empty if the filter has a key.
    std::string cursor{};
    /// Maximum number of locks that one step of a purge removes, at least 1. A step may remove fewer.
    std::size_t limit = 1000;
};
/// Outcome of a listing.
struct list_outcome
{
    /// The locks that were found or removed, including those that were removed before a failure.
    std::vector<lock_status> locks{};
    /// Null, or the reason for a failure.
    failure_ptr error{};
    /// Cursor of the next page or step; empty after the last one.
    std::string next{};
};

/// Outcome of a request to create several claims, all or none.
struct create_all_outcome
{
    /// The answer for all claims together.
    create_status status = create_status::busy;
    /// Granted: one fencing token per claim, in the order of the claims.
    std::vector<std::uint64_t> fences{};
    /// Busy: the index of the claim that was refused. `refusal` contains its outcome.
    std::size_t which = 0;
    /// Busy or failed: the outcome of the claim that was refused, or of the whole request.
    create_outcome refusal{};
};

/// An operation on all locks of a group.
enum class group_action : unsigned char
{
    /// Removes the locks.
    release,
    /// Extends the remaining time of the locks.
    extend,
};
/// Outcome of an operation on all locks of a group.
struct group_outcome
{
    /// The locks that were released or extended, with their status before the operation.
    std::vector<lock_status> locks{};
    /// Null, or the reason for a failure.
    failure_ptr error{};
};

/// Outcome of a wait: the lock may be free now, or an event subscription has become active.
struct wait_outcome
{
};
/// Outcome of a close.
struct close_outcome
{
};

} // namespace colock::inline v0
