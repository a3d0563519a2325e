// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/core.hpp"

namespace colock::detail {

/// Leaves nothing behind when an acquiring frame dies, for whatever reason, before it has handed out its lock; and has
/// a shutdown wait for that frame.
struct core::departure
{
    core* self;
    const record_ptr* wanted;
    /// Where it is counted, if it is.
    std::atomic<unsigned>* counted_in = nullptr;

    departure(core& owner, const record_ptr& subject) : self(&owner), wanted(&subject)
    {
        // Until it lets go of the thread, only another thread can begin a shutdown.
        if (!is_single_threaded())
            count_in(self->can_.immediate ? self->granting_at_once_ : self->acquiring_);
    }
    departure(const departure&) = delete;
    departure& operator=(const departure&) = delete;
    ~departure()
    {
        if (!self)
            return;
        self->depart(*wanted);
        if (counted_in)
            self->stops_acquiring(*counted_in);
    }
    /// Before anything is awaited: it may take its time from now on.
    void takes_time() noexcept
    {
        if (counted_in == &self->acquiring_)
            return;
        auto* const before = counted_in;
        count_in(self->acquiring_);
        if (before)
            self->stops_acquiring(*before);
    }
    void dismiss() noexcept
    {
        core* const owner = std::exchange(self, nullptr);
        if (counted_in)
            owner->stops_acquiring(*counted_in);
    }

private:
    void count_in(std::atomic<unsigned>& counter) noexcept
    {
        add_to(counter, 1U);
        counted_in = &counter;
    }
};

} // namespace colock::detail
