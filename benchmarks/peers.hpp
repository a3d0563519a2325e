// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"

namespace bench {

/// colock on a Redis server, beside the same commands sent raw, a bare loop over the driver, and other libraries'
/// programs: all in turn, round by round. Returns a chart of what each reaches of the raw rate.
[[nodiscard]] chart run_uncontended_race(const options& settings, report& found);

/// colock and the other libraries' programs, if any, where eight workers share each key.
void run_contended_race(const options& settings, report& found);

} // namespace bench
