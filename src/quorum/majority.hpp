// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>

namespace colock::inline v0::quorum {

/// Returns the minimum number of nodes that form a majority. Two majorities always share a node.
[[nodiscard]] constexpr std::size_t majority_of(std::size_t nodes) noexcept
{
    return nodes / 2 + 1;
}

} // namespace colock::inline v0::quorum
