// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "rig.hpp"

#include <utility>

namespace colock::testing {

/// On a backend with these abilities; the locker is made anew, for it has asked already.
inline void pretend(rig& on, bool fifo, bool several, locker_options options = {})
{
    auto able = on.script->capabilities();
    able.fifo = fifo;
    able.several = several;
    on.script->set_capabilities(able);
    on.locker.emplace(on.backend(), std::move(options));
}

/// On a backend that cannot take several locks in one step.
inline void take_one_by_one(rig& on, bool fifo = true, locker_options options = {})
{
    pretend(on, fifo, false, std::move(options));
}

} // namespace colock::testing
