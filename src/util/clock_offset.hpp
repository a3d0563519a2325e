// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <atomic>

namespace colock::inline v0::detail {

/// Offset that is added to every reading of lease_clock. Zero, except in tests, which use it to implement a virtual
/// clock.
extern std::atomic<lease_clock::rep> clock_offset;

} // namespace colock::inline v0::detail
