// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/reply.hpp"

struct Stat;

namespace colock::inline v0::zookeeper::detail {

/// Copies the fields of the driver's structure.
[[nodiscard]] node_stat stat_of(const Stat& from) noexcept;
/// Returns the driver's code for the lifetime of a node.
[[nodiscard]] int mode_of(node_kind lifetime) noexcept;

} // namespace colock::inline v0::zookeeper::detail
