// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/lock_record.hpp"

#include <cstdint>

namespace colock::inline v0::detail {

class core;

// Functions that run from the moment nobody needs a lock any more until `cleanup_queue` owns its record.

/// Abandons an acquire that has not handed out its lock: it was cancelled or has failed, its frame is destroyed, or it
/// continues with another claim. A grant that it has or may still get is released in the background.
void abandon_acquire(core& self, lock_record& record) noexcept;
/// Releases a held lock in the background.
void release_in_background(core& self, lock_record& record) noexcept;
struct release_start
{
    /// The lock was held until this call.
    bool was_held = false;
    /// The answer has to be awaited. `seen` has been set to the version at which there was no answer.
    bool waits = false;
};
/// Begins to release `record`, if it is still held.
/// \param seen null if nobody waits for the answer
release_start begin_release(core& self, lock_record& record, std::uint32_t* seen = nullptr);
/// \returns whether the answer to a release that has begun has to be awaited
[[nodiscard]] bool must_await_answer(core& self, lock_record& record, std::uint32_t& seen);

} // namespace colock::inline v0::detail
