// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

namespace colock::inline v0::detail {

/// Returns a random delay, uniformly distributed from `delay * (1 - fraction)` to `delay * (1 + fraction)`.
[[nodiscard]] lease_clock::duration spread(lease_clock::duration delay, double fraction);

} // namespace colock::inline v0::detail
