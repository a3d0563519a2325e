// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>

namespace bench {

/// Everything that this program has taken from the heap: through `operator new`, which is replaced, and through
/// `std::aligned_alloc`, from which Asio takes coroutine frames. Bytes are the allocator's, rounding included.
struct allocation_count
{
    std::size_t objects = 0;
    std::size_t frames = 0;
    std::ptrdiff_t live_bytes = 0;
};

[[nodiscard]] allocation_count allocations() noexcept;

/// The process's resident set, in bytes.
[[nodiscard]] std::size_t resident_bytes();

} // namespace bench
