// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/lock_record.hpp"

#include <cstdint>

namespace colock::inline v0::detail {

class core;

// Functions that release a lock or give up an acquire, and pass its record to `pending_releases`.

/// Abandons an acquire that has not handed out its lock: it was cancelled or has failed, its frame is destroyed, or it
/// continues with another claim. A grant that it has or may still get is released in the background.
void abandon_acquire(core& self, lock_record& record) noexcept;
/// Releases a held lock in the background.
void release_in_background(core& self, lock_record& record) noexcept;
struct begin_release_result
{
    /// The lock was held until this call.
    bool was_held = false;
    /// The answer has to be awaited: `seen` is the version to pass to `async_wait`.
    bool waits = false;
};
/// Begins to release `record`, if it is still held.
/// \param seen null if nobody waits for the answer
begin_release_result begin_release(core& self, lock_record& record, std::uint32_t* seen = nullptr);
/// \returns whether the answer to a release that has begun has to be awaited
[[nodiscard]] bool must_await_answer(core& self, lock_record& record, std::uint32_t& seen);

} // namespace colock::inline v0::detail
