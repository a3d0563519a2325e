// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>

namespace colock::inline v0::remote {

/// Base of the operations of a backend. Objects that are allocated for every lock reuse the memory of objects that were
/// freed on the same thread. Asio's recycling allocator takes three times as long, and works only on threads that run a
/// context.
struct operation_allocation
{
    static void* operator new(std::size_t size);
    static void operator delete(void* memory, std::size_t size) noexcept;
};

} // namespace colock::inline v0::remote
