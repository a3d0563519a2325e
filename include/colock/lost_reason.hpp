// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/export.hpp>

#include <cstddef>
#include <ostream>

namespace colock::inline v0 {

/// Why a lease ended.
enum class lost_reason : unsigned char
{
    /// The holder released the lock. This is not a loss.
    released,
    /// The lease expired, because it was not extended in time.
    expired,
    /// The backend reported that this holder does not hold the lock, or no longer holds it. Possible causes: another
    /// holder has acquired it, or the backend has lost its data.
    taken,
    /// The backend session to which the lock belonged has ended.
    session,
    /// The lock was broken by an administrator.
    broken,
    /// The locker was shut down.
    shutting_down,
};
/// The number of reasons.
inline constexpr std::size_t lost_reason_count = static_cast<std::size_t>(lost_reason::shutting_down) + 1;

/// Returns a word for each reason: "released", "expired", ...
COLOCK_EXPORT [[nodiscard]] const char* to_string(lost_reason reason) noexcept;

/// Prints the word of to_string().
inline std::ostream& operator<<(std::ostream& out, lost_reason reason)
{
    return out << to_string(reason);
}

} // namespace colock::inline v0
