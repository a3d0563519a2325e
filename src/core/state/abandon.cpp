// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/abandon.hpp"

#include "core/state/core.hpp"

namespace colock::inline v0::detail {

void release_in_background(core& self, lock_record& record) noexcept
{
    if (record.current_phase() == phase::held)
        self.update([&](deferred_actions& actions) { self.end_and_release(record, lost_reason::released, actions); });
    if (record.current_phase() != phase::ending)
        return;
    const std::lock_guard guard(self.mutex);
    self.releases.keep_core_until_all_released(record);
}

void abandon_acquire(core& self, lock_record& record) noexcept
{
    record.cancel();
    self.update([&](deferred_actions& actions) { self.abandon(record, actions); });
    release_in_background(self, record);
}

} // namespace colock::inline v0::detail
