// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/clock.hpp>
#include <colock/detail/export.hpp>

#include <atomic>

namespace colock::inline v0::detail {

/// Offset that is added to every reading of lease_clock. Zero, except in tests: testing::virtual_clock sets it.
COLOCK_EXPORT extern std::atomic<lease_clock::rep> clock_offset;

} // namespace colock::inline v0::detail
