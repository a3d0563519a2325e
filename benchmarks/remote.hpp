// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"

namespace bench {

/// Measures a backend by its URL: pairs with few in flight, with many in flight, and with the load of the options. For
/// a single server without a password, also measures waiters, and other libraries if there are any. Returns a chart.
[[nodiscard]] chart run_remote(const options& settings, report& results);

} // namespace bench
