// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/async_functions.hpp>

#include "core/operations/operation_errors.hpp"
#include "core/state/abandon.hpp"
#include "core/state/core.hpp"

#include <atomic>
#include <exception>

namespace colock::inline v0::detail {

/// Abandons an acquire if its coroutine frame is destroyed, for whatever reason, before the lock was handed out, and
/// reports that to the observer. Counts the frame, so that a shutdown waits for it.
struct acquire_guard
{
    /// Null before the acquire begins, and once its lock was handed out.
    const lock_record::ptr* record = nullptr;
    /// The counter of the core that currently includes this acquire; null if none does.
    std::atomic<unsigned>* counted_in = nullptr;
    /// The exception with which the acquire ends; null if its frame is destroyed before it ends.
    std::exception_ptr failure;
    /// A single attempt has found the lock busy.
    bool is_busy = false;
    /// False for a lock of a group, which reports all of its keys together.
    bool reports = true;

    acquire_guard() = default;
    explicit acquire_guard(const lock_record::ptr& claim) { begin(claim); }
    acquire_guard(const acquire_guard&) = delete;
    acquire_guard& operator=(const acquire_guard&) = delete;
    void begin(const lock_record::ptr& claim) noexcept
    {
        record = &claim;
        core& self = owner_core();
        // In a single-threaded process, nobody can begin a shutdown before this coroutine suspends.
        if (!is_single_threaded())
            count_in(self.can.immediate ? self.immediate_creates : self.acquire_count);
    }
    ~acquire_guard()
    {
        if (!record)
            return;
        core& self = owner_core();
        // A lock that was granted, but not handed out, is reported as granted and then as released.
        if (reports && (*record)->current_phase() == phase::acquiring)
            report_not_granted(self, *record, end_code());
        abandon_acquire(self, **record);
        if (counted_in)
            count_out(self, *counted_in);
    }
    /// Moves the acquire to `core::acquire_count`, because it may have to wait. Must be called before anything is
    /// awaited.
    void enter_slow_path() noexcept
    {
        core& self = owner_core();
        if (counted_in == &self.acquire_count)
            return;
        auto* const before = counted_in;
        count_in(self.acquire_count);
        if (before)
            count_out(self, *before);
    }
    void dismiss() noexcept
    {
        core& self = owner_core();
        record = nullptr;
        if (counted_in)
            count_out(self, *counted_in);
    }

private:
    [[nodiscard]] core& owner_core() const noexcept { return *(*record)->owner_core; }
    [[nodiscard]] error_code end_code() const
    {
        if (failure)
            return code_of(failure);
        if (is_busy)
            return errc::retry_exhausted;
        return code_of_destroyed_acquire(owner_core());
    }
    void count_in(std::atomic<unsigned>& counter) noexcept
    {
        add_to(counter, 1U);
        counted_in = &counter;
    }
    static void count_out(core& self, std::atomic<unsigned>& counter) noexcept
    {
        if (add_to(counter, ~0U) == 0 && self.closed_to_new)
            self.shutdown.notify_drained();
    }
};

} // namespace colock::inline v0::detail
