// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/core.hpp"

namespace colock::detail {

/// Leaves nothing behind when an acquiring frame dies, for whatever reason, before it has handed out its lock.
struct core::departure
{
    core* self;
    const record_ptr* wanted;

    departure(core& owner, const record_ptr& subject) : self(&owner), wanted(&subject) { add_to(self->acquiring_, 1U); }
    departure(const departure&) = delete;
    departure& operator=(const departure&) = delete;
    ~departure()
    {
        if (!self)
            return;
        self->depart(*wanted);
        self->stops_acquiring();
    }
    void dismiss() noexcept { std::exchange(self, nullptr)->stops_acquiring(); }
};

} // namespace colock::detail
