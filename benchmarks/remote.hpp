// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"

namespace bench {

/// What pairs cost on a backend that is named by a URL: few in flight, many in flight, and the load of the options.
void run_remote(const options& settings, report& found);

} // namespace bench
