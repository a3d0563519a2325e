// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>

namespace bench {

/// What this program has taken from the heap: through `operator new`, which is replaced, and through
/// `std::aligned_alloc`, from which Asio takes coroutine frames.
struct allocation_count
{
    std::size_t objects = 0;
    std::size_t frames = 0;
};

[[nodiscard]] allocation_count allocations() noexcept;

/// Counts bytes while it lives, the allocator's rounding included; only then, because it takes time. One at a time.
class byte_count
{
public:
    byte_count() noexcept;
    byte_count(const byte_count&) = delete;
    byte_count& operator=(const byte_count&) = delete;
    ~byte_count();

    /// Taken since, less what was given back since.
    [[nodiscard]] std::ptrdiff_t grown() const noexcept;
};

/// The process's resident set, in bytes.
[[nodiscard]] std::size_t resident_bytes();

} // namespace bench
