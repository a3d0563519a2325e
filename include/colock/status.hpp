// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/export.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace colock::inline v0 {

/// Selects how many holders a lock may have at the same time.
enum class lock_mode : unsigned char
{
    /// One holder.
    exclusive,
    /// Any number of shared holders, or at most `max_holders` of them; never together with an exclusive one.
    shared,
};

/// Returns "exclusive" or "shared".
COLOCK_EXPORT [[nodiscard]] const char* to_string(lock_mode mode) noexcept;

/// Prints the word of to_string().
inline std::ostream& operator<<(std::ostream& out, lock_mode mode)
{
    return out << to_string(mode);
}

/// Describes who requested a lock. Stored with the lock for people and tools; not a credential.
struct owner_data
{
    /// Default: the process id. At most 256 bytes; the same limit applies to the other fields.
    std::string owner{};
    /// Default: the machine's host name.
    std::string host{};
    /// Reason for the lock; empty if none was given.
    std::string comment{};
    /// The id that the locks of one lock_group share; empty for a single lock.
    std::string group{};

    friend bool operator==(const owner_data&, const owner_data&) = default;
};

/// Status of one held lock, as the backend reports it. Does not contain the token.
struct COLOCK_EXPORT lock_status
{
    /// The key.
    std::string key{};
    /// The id of its lock_group; empty for a single lock.
    std::string group{};
    /// Exclusive or shared.
    lock_mode mode = lock_mode::exclusive;
    /// Name of the requester, see owner_data.
    std::string owner{};
    /// Host of the requester.
    std::string host{};
    /// Reason for the lock.
    std::string comment{};
    /// Wall-clock time of the grant, for people, by the backend's clock if it has one; empty if the backend does not
    /// store it. It does not affect any decision.
    std::optional<std::chrono::system_clock::time_point> created{};
    /// Time of the last renewal or extension. Empty under the same conditions as `created`.
    std::optional<std::chrono::system_clock::time_point> renewed{};
    /// Time until the lock expires in the backend; empty for a lock without ttl. Not negative.
    std::optional<std::chrono::milliseconds> remaining{};
    /// The fencing token; 0 if the backend has none, or does not store it with the lock.
    std::uint64_t fence = 0;
};

/// Order of the locks that `list` returns.
enum class list_order : unsigned char
{
    /// The order in which the backend returns them.
    any,
    /// By creation time, the newest first. Locks without a creation time come last.
    newest_first,
};

/// One page of a list of locks.
struct COLOCK_EXPORT lock_page
{
    /// The locks of this page. It may be empty although more pages follow.
    std::vector<lock_status> locks{};
    /// Cursor of the next page; empty after the last page.
    std::string next{};
};

/// Conditions for the locks that `list` returns. A lock is returned if it satisfies all conditions that are set.
struct COLOCK_EXPORT filter
{
    /// The key is equal to this.
    std::optional<std::string> key{};
    /// The key begins with this.
    std::optional<std::string> key_prefix{};
    /// The lock belongs to the group with this id.
    std::optional<std::string> group{};
    /// The name of the requester is equal to this.
    std::optional<std::string> owner{};
    /// The lock has this mode.
    std::optional<lock_mode> mode{};
    /// The lock was created before this time.
    std::optional<std::chrono::system_clock::time_point> created_before{};
    /// The lock was created at this time or later.
    std::optional<std::chrono::system_clock::time_point> created_after{};
    /// The remaining time is less than this. A lock without ttl never matches.
    std::optional<std::chrono::milliseconds> remaining_below{};
    /// The remaining time is at least this. A lock without ttl always matches.
    std::optional<std::chrono::milliseconds> remaining_at_least{};

    /// Returns whether the lock satisfies all conditions that are set. A condition on a time that the backend does not
    /// store is not satisfied.
    [[nodiscard]] bool matches(const lock_status& status) const;
};

} // namespace colock::inline v0
