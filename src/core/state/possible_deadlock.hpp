// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/status.hpp>

#include "core/state/lock_record.hpp"

#include <source_location>

namespace colock::inline v0::detail {

/// Owner data with the source location of the acquire. Used only with `locker_options::debug`, so that other records
/// need no memory for it.
struct located_owner_data : owner_data
{
    std::source_location location;
};

/// Returns the source location of the acquire of `record`. Its locker must have `locker_options::debug`.
[[nodiscard]] inline const std::source_location& place_of(const lock_record& record) noexcept
{
    return static_cast<const located_owner_data&>(record.owner()).location;
}

/// Reports an acquire that waits for a lock of its own locker; see observer::possible_deadlock. Called when `record`
/// begins or continues to wait, if the locker has `locker_options::debug`. Returns when it must be called again at the
/// latest. The mutex must be held.
[[nodiscard]] lease_clock::time_point report_possible_deadlock(
    core& self, lock_record& record, lease_clock::time_point now);

} // namespace colock::inline v0::detail
