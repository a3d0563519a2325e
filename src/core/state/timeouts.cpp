// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// These functions run when a timer is due: a wait times out, a lease is renewed or ends, or a release is repeated.
#include "core/state/core.hpp"
#include "core/state/run_in_batches.hpp"

#include <mutex>

namespace colock::inline v0::detail {

namespace {

/// Does what the due time of `due` was scheduled for.
void on_due(core& self, condition& due, lease_clock::time_point now, deferred_actions& actions)
{
    if (!due.is_record) {
        due.notify(actions.wakes);
        return;
    }
    auto& record = static_cast<lock_record&>(due);
    switch (record.current_phase()) {
    case phase::acquiring:
        record.notify(actions.wakes);
        return;
    case phase::held:
        if (!self.leases.follow_plan(record, now, actions))
            return;
        break;
    case phase::ending:
        if (record.release_state().retries.take_due(now))
            self.releases.send_release(record, actions);
        break;
    case phase::ended:
        return;
    }
    if (now >= record.lease_state().earliest_wait_deadline) {
        record.lease_state().earliest_wait_deadline = lease_clock::time_point::max();
        record.notify(actions.wakes);
    }
    if (record.current_phase() == phase::held) {
        self.leases.reschedule(record);
        if (record.is_to_be_queried)
            self.leases.query(record, actions);
    } else if (record.current_phase() == phase::ending) {
        self.timers.schedule(record, record.release_due());
    }
}

} // namespace

void core::on_timer()
{
    update([&](deferred_actions& actions) {
        const auto now = lease_clock::now();
        timers.mark_fired(now);
        for (std::size_t n = 0; n < max_items_per_handler; ++n) {
            condition* const due = timers.take_due(now);
            if (!due)
                break;
            on_due(*this, *due, now, actions);
        }
        timers.arm();
    });
}

void core::disarm_unused_timer()
{
    const std::lock_guard guard(mutex);
    timers.disarm_if_unused();
}

} // namespace colock::inline v0::detail
