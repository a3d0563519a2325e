// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"

namespace bench {

/// What it takes to list very many locks page by page, and to purge very many that have expired: memory, and the
/// longest that one handler takes.
void measure_listing(const options& settings, report& found);

} // namespace bench
