// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"

namespace bench {

/// What the forms in which a lock is used cost the client on a remote backend, beside the bare pair of acquire and
/// release.
void measure_forms(const options& settings, report& found);

} // namespace bench
