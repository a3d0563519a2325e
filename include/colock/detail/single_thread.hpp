// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <atomic>
#include <mutex>

#if defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define COLOCK_KNOWS_SINGLE_THREADED
#endif
#endif

namespace colock::detail {

/// Whether the process has had one thread only until now, as the C library knows it. Goes from true to false once, when
/// the first thread is made, and never back as far as we care.
[[nodiscard]] inline bool is_single_threaded() noexcept
{
#ifdef COLOCK_KNOWS_SINGLE_THREADED
    return __libc_single_threaded != 0;
#else
    return false;
#endif
}

/// A mutex that costs a program with one thread next to nothing. What it guards must not make threads.
class light_mutex
{
public:
    void lock()
    {
        const bool needed = !is_single_threaded();
        if (needed)
            mutex_.lock();
        taken_ = needed;
    }
    void unlock()
    {
        if (taken_)
            mutex_.unlock();
    }

private:
    std::mutex mutex_;
    /// Guarded by the mutex itself, or by there being nobody else.
    bool taken_ = false;
};

/// Adds to a number that others may change at the same time, and returns what it is then.
template <class Number>
Number add_to(std::atomic<Number>& to, Number summand) noexcept
{
    if (!is_single_threaded())
        return to.fetch_add(summand) + summand;
    const Number sum = to.load(std::memory_order_relaxed) + summand;
    to.store(sum, std::memory_order_relaxed);
    return sum;
}

/// A reference count that is atomic as soon as there is more than one thread, as that of std::shared_ptr is.
class reference_count
{
public:
    void add() noexcept
    {
        if (is_single_threaded())
            count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        else
            count_.fetch_add(1, std::memory_order_relaxed);
    }
    /// True if that was the last one.
    [[nodiscard]] bool remove() noexcept
    {
        if (is_single_threaded()) {
            const unsigned left = count_.load(std::memory_order_relaxed) - 1;
            count_.store(left, std::memory_order_relaxed);
            return left == 0;
        }
        return count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }

private:
    std::atomic<unsigned> count_{0};
};

} // namespace colock::detail
