// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Operations on all locks of a group.
#include "memory/holders.hpp"
#include "memory/status_builder.hpp"

#include <algorithm>

namespace colock::inline v0::memory {

std::vector<lock_status> store::release_group(const std::string& id)
{
    std::vector<lock_status> released;
    for (auto& home : shards_) {
        const status_builder builder;
        store_actions after;
        const std::lock_guard guard(home.mutex);
        for (entry* const at : home.groups.entries_of(id)) {
            remove_expired(home.groups, *at, builder.now(), no_removal_limit, after, ignore_holder);
            for (std::size_t index = 0; index < at->holders.size();) {
                auto& held = at->holders[index];
                if (held.data().group != id) {
                    ++index;
                    continue;
                }
                released.push_back(builder.status(*at, held));
                break_holder(home.groups, *at, held, after);
            }
            hand_off(home, *at, after);
            remove_if_empty(home, *at);
        }
    }
    return released;
}

group_outcome store::extend_group(const std::string& id, std::chrono::milliseconds ttl)
{
    group_outcome outcome;
    std::vector<std::unique_lock<detail::light_mutex>> guards;
    for (auto& home : shards_)
        guards.emplace_back(home.mutex);
    const status_builder builder;
    std::vector<holder*> members;
    for (auto& home : shards_) {
        for (entry* const at : home.groups.entries_of(id)) {
            for (auto& held : at->holders) {
                if (held.expires <= builder.now() || held.data().group != id)
                    continue;
                if (held.expires == lease_clock::time_point::max())
                    return {.error = make_failure(errc::invalid_ttl, "the lock " + at->key + " has no ttl")};
                outcome.locks.push_back(builder.status(*at, held));
                members.push_back(&held);
            }
        }
    }
    for (holder* const held : members) {
        held->expires = std::max(held->expires, saturating_add(builder.now(), ttl));
        held->renewed = builder.now();
    }
    return outcome;
}

std::size_t store::group_count()
{
    std::size_t groups = 0;
    for (auto& home : shards_) {
        const std::lock_guard guard(home.mutex);
        groups += home.groups.size();
    }
    return groups;
}

} // namespace colock::inline v0::memory
