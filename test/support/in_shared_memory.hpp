// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cerrno>
#include <ctime>
#include <functional>
#include <new>

#include <semaphore.h>
#include <sys/mman.h>

namespace colock::testing {

/// An object in memory that several processes share.
template <class T>
class in_shared_memory
{
public:
    in_shared_memory()
        : memory_(::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
          object_(new(memory_) T())
    {
    }
    ~in_shared_memory()
    {
        object_->~T();
        ::munmap(memory_, sizeof(T));
    }
    in_shared_memory(const in_shared_memory&) = delete;
    in_shared_memory& operator=(const in_shared_memory&) = delete;
    T* operator->() const noexcept { return object_; }

private:
    void* const memory_;
    T* const object_;
};

/// A notification between processes. The object has to be in shared memory.
class shared_event
{
public:
    shared_event() { ::sem_init(&semaphore_, 1, 0); }
    ~shared_event() { ::sem_destroy(&semaphore_); }
    shared_event(const shared_event&) = delete;
    shared_event& operator=(const shared_event&) = delete;

    void notify() { ::sem_post(&semaphore_); }
    /// Waits until `reached` returns true. The condition is checked again after each notification. Returns false if the
    /// condition is still false after 30 seconds.
    [[nodiscard]] bool wait_until(const std::function<bool()>& reached)
    {
        timespec limit{};
        ::clock_gettime(CLOCK_REALTIME, &limit);
        limit.tv_sec += 30;
        while (!reached()) {
            if (::sem_timedwait(&semaphore_, &limit) != 0 && errno != EINTR)
                return reached();
        }
        return true;
    }

private:
    sem_t semaphore_{};
};

} // namespace colock::testing
