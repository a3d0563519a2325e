// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <new>

#include <sys/mman.h>

namespace colock::testing {

/// An object that several processes see.
template <class T>
class in_shared_memory
{
public:
    in_shared_memory()
        : memory_(::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
          object_(new(memory_) T())
    {
    }
    ~in_shared_memory() { ::munmap(memory_, sizeof(T)); }
    in_shared_memory(const in_shared_memory&) = delete;
    in_shared_memory& operator=(const in_shared_memory&) = delete;
    T* operator->() const noexcept { return object_; }

private:
    void* const memory_;
    T* const object_;
};

} // namespace colock::testing
