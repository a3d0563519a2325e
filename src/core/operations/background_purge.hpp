// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <memory>

namespace colock::inline v0::detail {

class core;

/// Starts a coroutine that removes expired locks at an interval, if the options ask for it and locks can expire on the
/// backend. The coroutine ends when the core accepts no new acquires.
///
/// Of all lockers, only the holder of a common lock purges. The holder keeps this lock until its core accepts no new
/// acquires, and extends it when a step of a purge finds less than half of its TTL left. The other lockers try to
/// acquire the lock at the same interval, so one of them takes over when the lock has expired.
void begin_background_purge(const std::shared_ptr<core>& self);

} // namespace colock::inline v0::detail
