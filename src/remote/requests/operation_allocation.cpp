// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/operation_allocation.hpp"

#include "util/spare_blocks.hpp"

#include <new>

namespace colock::inline v0::remote {

namespace {

/// Block size that is sufficient for the operations of every lock.
constexpr std::size_t block = 512;
constinit thread_local colock::detail::spare_blocks spares;

} // namespace

void* operation_allocation::operator new(std::size_t size)
{
    return size <= block ? spares.allocate(block) : ::operator new(size);
}

void operation_allocation::operator delete(void* memory, std::size_t size) noexcept
{
    if (size <= block)
        spares.deallocate(memory);
    else
        ::operator delete(memory);
}

} // namespace colock::inline v0::remote
