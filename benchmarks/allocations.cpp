// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "allocations.hpp"

#include <cstdlib>
#include <fstream>
#include <new>

#include <malloc.h>
#include <unistd.h>

namespace {

// The counters are not atomic, because the benchmark allocates on one thread. Allocations by threads of a library do
// not matter.
constinit bench::allocation_count count;
constinit bool counts_bytes = false;
constinit std::ptrdiff_t bytes = 0;

void add_bytes(void* block)
{
    if (counts_bytes)
        bytes += static_cast<std::ptrdiff_t>(malloc_usable_size(block));
}

void* counted(void* block)
{
    if (!block)
        throw std::bad_alloc();
    ++count.objects;
    add_bytes(block);
    return block;
}

} // namespace

// With --wrap, the linker redirects the program's calls of these functions to the definitions below.
extern "C" {
void* __real_aligned_alloc(std::size_t alignment, std::size_t size);
void __real_free(void* block);

void* __wrap_aligned_alloc(std::size_t alignment, std::size_t size)
{
    void* const block = __real_aligned_alloc(alignment, size);
    ++count.frames;
    add_bytes(block);
    return block;
}
void __wrap_free(void* block)
{
    if (counts_bytes)
        bytes -= static_cast<std::ptrdiff_t>(malloc_usable_size(block));
    __real_free(block);
}
}

void* operator new(std::size_t size)
{
    return counted(std::malloc(size));
}
void* operator new(std::size_t size, std::align_val_t alignment)
{
    const auto step = static_cast<std::size_t>(alignment);
    return counted(__real_aligned_alloc(step, (size + step - 1) / step * step));
}
void operator delete(void* block) noexcept
{
    __wrap_free(block);
}
void operator delete(void* block, std::size_t) noexcept
{
    __wrap_free(block);
}
void operator delete(void* block, std::align_val_t) noexcept
{
    __wrap_free(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept
{
    __wrap_free(block);
}

namespace bench {

allocation_count allocations() noexcept
{
    return count;
}

byte_count::byte_count() noexcept
{
    bytes = 0;
    counts_bytes = true;
}
byte_count::~byte_count()
{
    counts_bytes = false;
}
std::ptrdiff_t byte_count::grown() const noexcept
{
    return bytes;
}

std::size_t resident_bytes()
{
    std::size_t total = 0;
    std::size_t resident = 0;
    std::ifstream("/proc/self/statm") >> total >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

} // namespace bench
