// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"

#include <string>

namespace bench {

/// How long an `acquire_all` waits for keys that callers of another locker use, against the number of its keys times
/// what a single acquire of the slowest of them waits. Where the backend keeps no queue there is no order among
/// lockers, so that the wait has no bound but this measurement.
void measure_group_waits(const std::string& backend, const options& settings, report& found);

} // namespace bench
