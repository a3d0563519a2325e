// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace colock {

/// How many may hold a lock at the same time.
enum class lock_mode : unsigned char
{
    /// One holder.
    exclusive,
    /// Any number of shared holders, or at most `max_holders` of them; never together with an exclusive one.
    shared,
};

/// Why a lease ended.
enum class lost_reason : unsigned char
{
    /// It ended well: released by its holder.
    released,
    /// Its time ran out without an extension in time.
    expired,
    /// The backend said that the lock is not, or no longer, ours.
    taken,
    /// The backend's session that carried it ended.
    session,
    /// An administrator broke it.
    broken,
    /// The locker shut down.
    shutting_down,
    /// The process forked, and this is the child: the parent goes on holding it.
    forked,
};

/// A word for each reason: "released", "expired", ...
[[nodiscard]] const char* to_string(lost_reason reason) noexcept;
[[nodiscard]] const char* to_string(lock_mode mode) noexcept;

/// Who asked for a lock, as it is stored beside it for people and tools. Not a credential.
struct owner_data
{
    /// Default: the process id. At most 256 bytes, as each of these fields.
    std::string owner{};
    /// Default: the machine's host name.
    std::string host{};
    std::string comment{};
    /// The id that locks of one lock_group share; empty for a single lock.
    std::string group{};

    friend bool operator==(const owner_data&, const owner_data&) = default;
};

/// What a backend tells of one held lock. Never its token.
struct lock_status
{
    std::string key{};
    std::string group{};
    lock_mode mode = lock_mode::exclusive;
    std::string owner{};
    std::string host{};
    std::string comment{};
    /// Wall-clock times for people, by the backend's clock where it has one; absent where it keeps none. They decide
    /// nothing.
    std::optional<std::chrono::system_clock::time_point> created{};
    std::optional<std::chrono::system_clock::time_point> renewed{};
    /// Time until the backend lets it expire; absent for a lock without ttl. Not negative.
    std::optional<std::chrono::milliseconds> remaining{};
    /// 0 where the backend has no fence, or does not keep it with the lock.
    std::uint64_t fence = 0;
};

/// In which order `list` returns what it has collected.
enum class list_order : unsigned char
{
    /// As the backend tells of them.
    any,
    /// By the time of creation, the newest first; what has none comes last.
    newest_first,
};

/// Part of a list.
struct lock_page
{
    std::vector<lock_status> locks{};
    /// Where the next page begins; empty after the last.
    std::string next{};
};

/// Which locks `list` returns: those that satisfy every condition that is set.
struct filter
{
    std::optional<std::string> key{};
    std::optional<std::string> key_prefix{};
    std::optional<std::string> group{};
    std::optional<std::string> owner{};
    std::optional<lock_mode> mode{};
    std::optional<std::chrono::system_clock::time_point> created_before{};
    /// At this moment or later.
    std::optional<std::chrono::system_clock::time_point> created_after{};
    /// Less than this remains. A lock without ttl never matches.
    std::optional<std::chrono::milliseconds> remaining_below{};
    /// At least this remains. A lock without ttl always matches.
    std::optional<std::chrono::milliseconds> remaining_at_least{};

    /// A condition on a time that the backend does not keep is not satisfied.
    [[nodiscard]] bool matches(const lock_status& status) const;
};

} // namespace colock
