// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"

namespace bench {

/// Limit of the ratio of an uncontended acquire and release on one key to the floor.
constexpr double uncontended_limit = 5.5;

/// Measures the cost of the core with the memory adapter, compared to the floor.
void run_memory(const options& settings, report& results);

} // namespace bench
