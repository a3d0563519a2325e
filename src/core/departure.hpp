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
    bool counted = false;

    departure(core& owner, const record_ptr& subject) : self(&owner), wanted(&subject)
    {
        // Until it lets go of the thread, only another thread can begin a shutdown.
        if (!is_single_threaded())
            count();
    }
    departure(const departure&) = delete;
    departure& operator=(const departure&) = delete;
    ~departure()
    {
        if (!self)
            return;
        self->depart(*wanted);
        if (counted)
            self->stops_acquiring();
    }
    /// Before anything is awaited.
    void count() noexcept
    {
        if (!std::exchange(counted, true))
            add_to(self->acquiring_, 1U);
    }
    void dismiss() noexcept
    {
        core* const owner = std::exchange(self, nullptr);
        if (counted)
            owner->stops_acquiring();
    }
};

} // namespace colock::detail
