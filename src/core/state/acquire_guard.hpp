// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/background_release.hpp"
#include "core/state/core.hpp"

#include <atomic>
#include <utility>

namespace colock::inline v0::detail {

/// Abandons an acquire if its coroutine frame is destroyed, for whatever reason, before the lock was handed out. Counts
/// the frame, so that a shutdown waits for it.
struct acquire_guard
{
    core* self = nullptr;
    const record::ptr* wanted = nullptr;
    /// The counter that includes this acquire; null if none does.
    std::atomic<unsigned>* counted_in = nullptr;

    acquire_guard() = default;
    acquire_guard(core& owner, const record::ptr& subject) { begin(owner, subject); }
    acquire_guard(const acquire_guard&) = delete;
    acquire_guard& operator=(const acquire_guard&) = delete;
    void begin(core& owner, const record::ptr& subject) noexcept
    {
        self = &owner;
        wanted = &subject;
        // In a single-threaded process, nobody can begin a shutdown before this coroutine suspends.
        if (!is_single_threaded())
            count_in(self->can.immediate ? self->immediate_creates : self->acquire_count);
    }
    ~acquire_guard()
    {
        if (!self)
            return;
        abandon_acquire(*self, *wanted);
        if (counted_in)
            count_out(*self, *counted_in);
    }
    /// Counts the acquire among those that may have to wait. Must be called before anything is awaited.
    void enter_slow_path() noexcept
    {
        if (counted_in == &self->acquire_count)
            return;
        auto* const before = counted_in;
        count_in(self->acquire_count);
        if (before)
            count_out(*self, *before);
    }
    void dismiss() noexcept
    {
        core* const owner = std::exchange(self, nullptr);
        if (counted_in)
            count_out(*owner, *counted_in);
    }

private:
    void count_in(std::atomic<unsigned>& counter) noexcept
    {
        add_to(counter, 1U);
        counted_in = &counter;
    }
    static void count_out(core& owner, std::atomic<unsigned>& counter) noexcept
    {
        if (add_to(counter, ~0U) == 0 && owner.closed_to_new)
            owner.notify_drained();
    }
};

} // namespace colock::inline v0::detail
