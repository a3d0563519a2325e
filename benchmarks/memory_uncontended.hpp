// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"
#include "report.hpp"

namespace bench {

/// Measures an acquire and release with the memory adapter: on one key and on many keys in turn, also while locks are
/// held on other keys, and while other keys have waiters.
void measure_uncontended(const options& settings, report& results);

/// Measures each way to acquire and release a lock, and the same work of Asio without a lock.
void measure_verbs(const options& settings, report& results);

/// Counts the heap allocations of an acquire and release, and of a try_acquire of a busy key.
void measure_allocations(report& results);

} // namespace bench
