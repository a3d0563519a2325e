// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>
#include <colock/error.hpp>
#include <colock/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace colock {

/// Why an operation failed. What `code` means for the operation:
/// - `errc::unavailable`: certainly not carried out; may be tried again.
/// - `errc::outcome_unknown`: sent, but not answered; may have been, or may yet be, carried out.
/// - any other: refused for good.
struct failure
{
    errc code = errc::outcome_unknown;
    /// The driver's or server's own code, where there is one.
    error_code cause{};
    /// In words; never a credential, never a token.
    std::string detail{};
};
/// Never null where an outcome says that it failed; the core takes a null for `errc::outcome_unknown`.
using failure_ptr = std::shared_ptr<const failure>;
[[nodiscard]] failure_ptr make_failure(errc code, std::string detail = {}, error_code cause = {});

enum class create_status : unsigned char
{
    granted,
    busy,
    failed,
};
struct create_outcome
{
    create_status status = create_status::busy;
    /// Granted: the fencing token; 0 where the backend has none.
    std::uint64_t fence = 0;
    /// Busy: how long until the holder's grant expires, if known; else zero. An expiry wakes nobody, so the core tries
    /// again then at the latest. A backend without events may name an earlier moment at which to look.
    lease_clock::duration retry_after{0};
    /// Busy: who holds it, for messages; may be empty.
    std::string holder{};
    failure_ptr error{};

    [[nodiscard]] static create_outcome granted(std::uint64_t fence)
    {
        create_outcome result;
        result.status = create_status::granted;
        result.fence = fence;
        return result;
    }
    [[nodiscard]] static create_outcome busy(lease_clock::duration retry_after = {}, std::string holder = {})
    {
        create_outcome result;
        result.retry_after = retry_after;
        result.holder = std::move(holder);
        return result;
    }
    [[nodiscard]] static create_outcome failed(failure_ptr error)
    {
        create_outcome result;
        result.status = create_status::failed;
        result.error = std::move(error);
        return result;
    }
};

enum class release_status : unsigned char
{
    released,
    /// Nothing of ours was there: expired, taken, or never granted.
    not_held,
    failed,
};
struct release_outcome
{
    release_status status = release_status::released;
    failure_ptr error{};
    /// Other lockers listen for this release: the locker's own waiters let them go first.
    bool others_wait = false;
};

enum class extend_status : unsigned char
{
    extended,
    not_held,
    failed,
};
struct extend_outcome
{
    extend_status status = extend_status::extended;
    failure_ptr error{};
};

struct valid_outcome
{
    bool valid = false;
    failure_ptr error{};
};

struct hand_over_outcome
{
    release_outcome released{};
    create_outcome created{};
};

struct list_outcome
{
    std::vector<lock_status> locks{};
    failure_ptr error{};
    /// Where the next page or step begins; empty after the last.
    std::string next{};
};

/// Several claims that are created together, all or none.
struct create_all_outcome
{
    create_status status = create_status::busy;
    /// Granted: a fencing token for each, in the order of the claims.
    std::vector<std::uint64_t> fences{};
    /// Busy: which of them is in the way; the rest as for one.
    std::size_t which = 0;
    create_outcome why{};
};

enum class group_action : unsigned char
{
    release,
    extend,
};
/// What was done with all locks of a group.
struct group_outcome
{
    /// Those that were released or extended, each as it was before.
    std::vector<lock_status> locks{};
    failure_ptr error{};
};

/// The lock may be free now, or its event source is newly armed.
struct woken
{
};
struct closed
{
};

} // namespace colock
