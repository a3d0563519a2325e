// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/possible_deadlock.hpp"

#include "core/state/core.hpp"

#include <chrono>

namespace colock::inline v0::detail {

namespace {

/// Minimum time that an acquire has waited and the lock has been held before it is reported. Also the interval between
/// two searches.
constexpr auto search_interval = std::chrono::seconds(1);

/// Returns a lock on the key of `record` that this locker holds; null if there is none. The locks of an incomplete
/// group have not been reported to anybody yet, so they are left out.
lock_record* find_own_holder(core& self, const lock_record& record, lease_clock::time_point now)
{
    for (auto& each : self.leases.all()) {
        if (each.key_hash() == record.key_hash() && each.key() == record.key() && !each.group_in_progress &&
            !each.lease().has_ended(now))
            return &each;
    }
    return nullptr;
}

} // namespace

lease_clock::time_point report_possible_deadlock(core& self, lock_record& record, lease_clock::time_point now)
{
    if (!self.options.observer || record.reported.possible_deadlock)
        return lease_clock::time_point::max();
    if (now < record.started + search_interval)
        return record.started + search_interval;
    auto* const holder = find_own_holder(self, record, now);
    if (!holder || holder->release_state().time_held.elapsed(now) < search_interval)
        return now + search_interval;
    record.reported.possible_deadlock = true;
    self.events.add({.type = lock_event::kind::possible_deadlock,
        .record = holder,
        .span = holder->release_state().time_held.elapsed(now),
        .waiting_at = place_of(record)});
    return lease_clock::time_point::max();
}

} // namespace colock::inline v0::detail
