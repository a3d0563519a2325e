// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/core.hpp"

namespace colock::detail {

/// Takes a notice out of the timers when the coroutine that waits on it ends, however that comes.
struct timer_guard
{
    core& self;
    condition& source;

    ~timer_guard()
    {
        deferred_actions actions;
        {
            const std::lock_guard guard(self.mutex);
            self.timers.schedule(source, lease_clock::time_point::max());
            // Whoever else waits on it asks for its own time.
            source.notify(actions.wakes);
        }
        actions.run(self);
    }
};

} // namespace colock::detail
