// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"

namespace bench {

/// What pairs cost on a backend that is named by a URL: few in flight, many in flight, and the load of the options; on
/// a Redis server that can be had without a password also what waiting costs, and how other libraries do. Returns a
/// chart of these.
[[nodiscard]] chart run_remote(const options& settings, report& found);

} // namespace bench
