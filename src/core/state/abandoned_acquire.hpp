// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/record.hpp"

namespace colock::inline v0::detail {

class core;

/// Abandons the acquire `wanted`, which has not handed out its lock: it was cancelled or has failed, its frame is
/// destroyed, or it continues with another claim. A grant, or a place in a queue, that it has or may still get is
/// released in the background.
void abandon_acquire(core& self, const record::ptr& wanted) noexcept;

} // namespace colock::inline v0::detail
