// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/export.hpp>

#include <atomic>

namespace colock::inline v0::detail {

/// Generation of this process. Starts at 1 and is incremented in the child of every fork, so that the child can detect
/// what its parent has made.
COLOCK_EXPORT extern std::atomic<unsigned> generation;

} // namespace colock::inline v0::detail
