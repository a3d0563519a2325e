// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <atomic>
#include <mutex>

#if defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define COLOCK_HAS_SINGLE_THREADED_FLAG
#endif
#endif

namespace colock::inline v0::detail {

/// Returns whether the process has had only one thread until now, according to the C library. Becomes false when the
/// first additional thread is created. colock does not depend on it becoming true again.
[[nodiscard]] inline bool is_single_threaded() noexcept
{
#ifdef COLOCK_HAS_SINGLE_THREADED_FLAG
    return __libc_single_threaded != 0;
#else
    return false;
#endif
}

/// A mutex that uses no atomic instruction while the process has only one thread. The code that it guards must not
/// create threads.
class light_mutex
{
public:
    void lock()
    {
        const bool needed = !is_single_threaded();
        if (needed)
            mutex_.lock();
        is_locked_ = needed;
    }
    void unlock()
    {
        if (is_locked_)
            mutex_.unlock();
    }

private:
    std::mutex mutex_;
    /// Whether the last call of `lock` has locked `mutex_`. Guarded by `mutex_`, or by the absence of other threads.
    bool is_locked_ = false;
};

/// Adds `summand` to a number that other threads may change at the same time, and returns the sum.
template <class Number>
Number add_to(std::atomic<Number>& to, Number summand) noexcept
{
    if (!is_single_threaded())
        return to.fetch_add(summand) + summand;
    const Number sum = to.load(std::memory_order_relaxed) + summand;
    to.store(sum, std::memory_order_relaxed);
    return sum;
}

/// A reference count that uses atomic instructions only if the process has several threads, as std::shared_ptr does.
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
    /// Removes one reference. Returns true if no reference is left.
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

} // namespace colock::inline v0::detail
