// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/lock_record.hpp"

namespace colock::inline v0::detail {

class core;

// Functions that release a lock, or give up an acquire, for which nobody waits any more.

/// Releases a lock whose handle or coroutine frame is destroyed. Has no effect if the lock was released before, except
/// that the core stays alive until the release is answered.
void release_in_background(core& self, lock_record& record) noexcept;
/// Abandons an acquire that has not handed out its lock: it was cancelled or has failed, its frame is destroyed, or it
/// continues with another claim. A grant that it has or may still get is released in the background.
void abandon_acquire(core& self, lock_record& record) noexcept;

} // namespace colock::inline v0::detail
