// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>

namespace colock::inline v0::detail {

/// Maximum number of items processed per handler, so that a large backlog does not block the event loop.
inline constexpr std::size_t max_items_per_handler = 256;

} // namespace colock::inline v0::detail
