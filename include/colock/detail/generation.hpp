// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <atomic>

namespace colock::detail {

/// Number of forks between the first process and this one. Incremented in the child of every fork, so that a child can
/// detect objects that were made by its parent.
extern std::atomic<unsigned> generation;

} // namespace colock::detail
