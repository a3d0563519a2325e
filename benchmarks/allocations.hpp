// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>

namespace bench {

/// Heap allocations of this program: by `operator new`, which is replaced, and by `std::aligned_alloc`, which Asio uses
/// for coroutine frames.
struct allocation_count
{
    std::size_t objects = 0;
    std::size_t frames = 0;
};

[[nodiscard]] allocation_count allocations() noexcept;

/// Counts allocated bytes while the object exists, including the rounding of the allocator. The count takes time, so it
/// is only active then. Only one object may exist at a time.
class byte_count
{
public:
    byte_count() noexcept;
    byte_count(const byte_count&) = delete;
    byte_count& operator=(const byte_count&) = delete;
    ~byte_count();

    /// Returns the bytes that were allocated since the construction, minus the bytes that were freed.
    [[nodiscard]] std::ptrdiff_t grown() const noexcept;
};

/// Returns the resident set size of the process in bytes.
[[nodiscard]] std::size_t resident_bytes();

} // namespace bench
