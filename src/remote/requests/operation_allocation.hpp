// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>

namespace colock::remote {

/// The operations of a backend inherit these: what is made for every lock reuses the memory of those that have ended on
/// the same thread. Asio's recycling allocator does the same in three times the time, and only on threads that run a
/// context.
struct operation_allocation
{
    static void* operator new(std::size_t size);
    static void operator delete(void* memory, std::size_t size) noexcept;
};

} // namespace colock::remote
