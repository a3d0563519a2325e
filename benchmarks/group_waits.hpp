// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"

#include <string>

namespace bench {

/// Measures the waiting time of an `acquire_all` for keys that callers of another locker use. It is compared to the
/// number of keys times the waiting time of a single acquire of the slowest key. On a backend without
/// a queue, the waiters of several lockers have no common order, so the wait has no upper bound.
void measure_group_waits(const std::string& backend, const options& settings, report& results);

} // namespace bench
