// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <memory>

namespace colock::detail {

class core;

/// Sweeps from time to time, if its options say so and anything can expire at its backend, until the core takes no new
/// acquires. Of all lockers one has the turn, a lock which it keeps as long as it lives: it extends it while it
/// sweeps, and for the others, who ask for it at the same intervals, the ttl tells that it is gone.
void begin_background_purge(const std::shared_ptr<core>& self);

} // namespace colock::detail
