// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <atomic>

namespace colock::detail {

/// Differs between a process and its parent: counted up in the child of every fork.
extern std::atomic<unsigned> generation;

} // namespace colock::detail
