// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"

namespace bench {

/// Measures a list of very many locks page by page, and a purge of very many expired locks: the memory and the longest
/// handler.
void measure_listing(const options& settings, report& results);

} // namespace bench
