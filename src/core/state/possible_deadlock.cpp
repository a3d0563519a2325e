// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/possible_deadlock.hpp"

#include "core/state/core.hpp"

#include <chrono>

namespace colock::inline v0::detail {

namespace {

/// Minimum time that an acquire has waited and the lock has been held before it is reported. Also the interval between
/// two searches.
constexpr auto search_interval = std::chrono::seconds(1);

/// Returns a lock on the key of `wanted` that this locker holds; null if there is none. The locks of an incomplete
/// group have not been reported to anybody yet, so they are left out.
record* find_own_holder(core& self, const record& wanted, lease_clock::time_point now)
{
    for (record& held : self.leases.all()) {
        if (held.key_hash() == wanted.key_hash() && held.key() == wanted.key() && !held.group_in_progress &&
            !held.lease().has_ended(now))
            return &held;
    }
    return nullptr;
}

} // namespace

lease_clock::time_point report_possible_deadlock(core& self, record& wanted, lease_clock::time_point now)
{
    if (!self.options.observer || wanted.reported.possible_deadlock)
        return lease_clock::time_point::max();
    if (now < wanted.started + search_interval)
        return wanted.started + search_interval;
    record* const holder = find_own_holder(self, wanted, now);
    if (!holder || holder->release_state().held.elapsed(now) < search_interval)
        return now + search_interval;
    wanted.reported.possible_deadlock = true;
    self.events.add({.what = lock_event::kind::possible_deadlock,
        .subject = holder,
        .span = holder->release_state().held.elapsed(now),
        .waiting_at = place_of(wanted)});
    return lease_clock::time_point::max();
}

} // namespace colock::inline v0::detail
