// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "memory/store.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace colock::inline v0::memory {

[[nodiscard]] inline lease_clock::time_point now_of(const claim& claim) noexcept
{
    const auto start = claim.operation_start();
    return start == lease_clock::time_point{} ? lease_clock::now() : start;
}

[[nodiscard]] inline lease_clock::time_point expiry(
    lease_clock::time_point from, std::chrono::milliseconds ttl) noexcept
{
    return ttl == ttl.zero() ? lease_clock::time_point::max() : saturating_add(from, ttl);
}

/// Returns the outcome of a claim that is excluded by the holders of its key.
[[nodiscard]] create_outcome make_busy_outcome(const entry& at, const claim& claim, lease_clock::time_point now);

/// Moves a holder's claim out of the store. The caller must remove or overwrite the holder next.
inline claim_ptr detach(holder& held) noexcept
{
    if (held.handed_to)
        std::exchange(held.handed_to, nullptr)->at = nullptr;
    return std::move(held.owner);
}

inline void take_out(entry& at, holder& held) noexcept
{
    if (&held != &at.holders.back())
        held = std::move(at.holders.back());
    at.holders.pop_back();
}

inline void remove(group_index& groups, entry& at, holder& held, store_actions& after)
{
    after.make_room_for_claim();
    groups.remove(held.data().group, at);
    if (auto owner = detach(held))
        after.drop(std::move(owner));
    take_out(at, held);
}

/// Removes a holder and reports the loss to its claim.
inline void break_holder(group_index& groups, entry& at, holder& held, store_actions& after)
{
    after.make_room_for_call();
    groups.remove(held.data().group, at);
    if (auto owner = detach(held))
        after.break_claim(std::move(owner));
    take_out(at, held);
}

/// Removes at most `limit` expired holders, and returns their number. Calls `visit` with each holder before its
/// removal.
template <class Visit>
std::size_t remove_expired(
    group_index& groups, entry& at, lease_clock::time_point now, std::size_t limit, store_actions& after, Visit visit)
{
    if (now < at.earliest)
        return 0;
    std::size_t removed = 0;
    auto earliest = lease_clock::time_point::max();
    for (std::size_t index = 0; index < at.holders.size();) {
        auto& held = at.holders[index];
        if (held.expires <= now && removed < limit) {
            visit(held);
            remove(groups, at, held, after);
            ++removed;
        } else {
            earliest = std::min(earliest, held.expires);
            ++index;
        }
    }
    at.earliest = earliest;
    return removed;
}

/// Wakes all waiters, because they wait for an expiry that has changed. There are few: each locker has only one waiter
/// here, or several if consecutive callers want shared locks.
inline void wake_all(entry& at, store_actions& after)
{
    for (auto& place : at.queue) {
        if (!place.waiting)
            continue;
        after.make_room_for_call();
        after.wake(std::move(place.waiting));
    }
}

/// A `visit` for `remove_expired` that does nothing.
inline constexpr auto ignore_holder = [](const holder&) {};
inline constexpr std::size_t no_removal_limit = std::numeric_limits<std::size_t>::max();

} // namespace colock::inline v0::memory
