// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/stats.hpp>

#include "core/operations/operations.hpp"
#include "core/state/core.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace colock::inline v0::detail::operations {

std::vector<held_lock> held_locks(core& self)
{
    std::vector<held_lock> result;
    const std::lock_guard guard(self.mutex);
    const auto now = lease_clock::now();
    for (const lock_record& record : self.leases.all()) {
        const auto ends = record.lease().valid_until();
        if (ends <= now || record.group_in_progress)
            continue;
        held_lock& seen = result.emplace_back();
        seen.key = record.key();
        seen.group = record.owner().group;
        seen.mode = record.mode();
        seen.fence = record.lease_state().fence;
        seen.ttl = record.ttl();
        if (ends != lease_clock::time_point::max())
            seen.valid_for = ends - now;
    }
    return result;
}

std::vector<waiting_acquire> waiting_acquires(core& self)
{
    std::vector<waiting_acquire> result;
    const std::lock_guard guard(self.mutex);
    const key_queue* queue = nullptr;
    std::size_t place = 0;
    self.queues.for_each([&](const lock_record& member) {
        const auto& acquire = member.acquire_state();
        place = std::exchange(queue, acquire.queue) == acquire.queue ? place + 1 : 1;
        if (acquire.plan.has_waited())
            result.push_back({.key = member.key(), .mode = member.mode(), .since = member.started, .place = place});
    });
    return result;
}

locker_options defaults(const core& self)
{
    auto options = self.options;
    options.owner = self.default_owner->owner;
    options.host = self.default_owner->host;
    return options;
}

locker_stats stats(core& self)
{
    locker_stats result;
    {
        const std::lock_guard guard(self.mutex);
        result = self.stats;
        result.settling = self.releases.size();
        // An expiry is detected only if somebody waits for it, so expired locks are excluded here.
        const auto now = lease_clock::now();
        result.held = static_cast<std::uint64_t>(
            std::count_if(self.leases.all().begin(), self.leases.all().end(), [now](const lock_record& record) {
                return !record.group_in_progress && now < record.lease().valid_until();
            }));
    }
    result.unproven += self.backend->unproven();
    result.reconnects = self.backend->reconnects();
    return result;
}

} // namespace colock::inline v0::detail::operations
