// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/breaking.hpp"

#include "core/state/core.hpp"
#include "util/simulation_marks.hpp"

#include <algorithm>
#include <mutex>

namespace colock::inline v0::detail {

std::vector<lock_record::ptr> find_held(core& self, const record_filter& which)
{
    std::vector<lock_record::ptr> found;
    const std::lock_guard guard(self.mutex);
    for (auto& each : self.leases.all()) {
        if (which(each))
            found.emplace_back(&each);
    }
    return found;
}

void on_broken(core& self, const record_filter& which, const std::vector<lock_record::ptr>& held_before, bool succeeded)
{
    self.update([&](deferred_actions& actions) {
        for (const auto& each : held_before) {
            if (succeeded)
                self.end_and_release(*each, lost_reason::broken, actions);
        }
        // An immediate backend reports the claims that it breaks.
        if (!self.can.immediate && !COLOCK_DEFECT(break_beside_grant)) {
            for (auto& each : self.leases.all()) {
                if (which(each)) {
                    COLOCK_SOMETIMES(lock_is_granted_beside_a_break);
                    self.leases.query(each, actions);
                }
            }
            const auto verify_if_granted = [&](lock_record& record) {
                record.is_to_be_queried |= record.in_flight == operation::create && which(record);
            };
            self.queues.for_each(verify_if_granted);
            std::for_each(self.unqueued_acquires.begin(), self.unqueued_acquires.end(), verify_if_granted);
        }
    });
}

} // namespace colock::inline v0::detail
