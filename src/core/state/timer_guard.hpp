// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/core.hpp"

namespace colock::inline v0::detail {

/// Removes a condition from the timers when the coroutine that waits on it ends, for whatever reason.
struct timer_guard
{
    core& self;
    condition& source;

    ~timer_guard()
    {
        self.update([&](deferred_actions& actions) {
            self.timers.schedule(source, lease_clock::time_point::max());
            // Other coroutines that wait on the condition schedule their own times again.
            source.notify(actions.wakes);
        });
    }
};

} // namespace colock::inline v0::detail
