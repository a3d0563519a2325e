// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"

namespace bench {

/// Measures the client's CPU time per lock for `with_lock`, deadlines and `async_` functions on a remote backend. The
/// plain acquire and release is measured for comparison.
void measure_forms(const options& settings, report& results);

} // namespace bench
