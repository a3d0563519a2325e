// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "memory/holders.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace colock::inline v0::memory {

namespace {

/// Makes a ticket from the fence and the token. The fence identifies the holder, because it is unique within a shard.
/// The token cannot be guessed.
std::string ticket_for(std::uint64_t fence, const claim& owner)
{
    return std::to_string(fence) + '.' + owner.token().hex();
}

holder* find_by_ticket(entry& at, std::string_view ticket)
{
    std::uint64_t fence = 0;
    std::from_chars(ticket.data(), ticket.data() + ticket.size(), fence);
    const auto found = std::ranges::find(at.holders, fence, &holder::fence);
    const bool is_it = found != at.holders.end() && found->owner && ticket_for(fence, *found->owner) == ticket;
    return is_it ? &*found : nullptr;
}

} // namespace

std::string store::export_ticket(const claim& held)
{
    auto& home = shard_of(held.key_hash());
    const std::lock_guard guard(home.mutex);
    entry* const at = home.entries.find(held.key_hash(), held.key());
    const holder* const own = at ? at->find(held) : nullptr;
    return own ? ticket_for(own->fence, held) : std::string();
}

/// Makes `claim` the holder of the lock with this ticket. Ignores the queue: the queued claims continue to wait for the
/// same lock.
create_outcome store::adopt(std::string_view ticket, claim_ptr claim)
{
    const auto now = now_of(*claim);
    store_actions after;
    sweep_if_due(now, after);
    auto& home = shard_of(claim->key_hash());
    const std::lock_guard guard(home.mutex);
    entry* const at = home.entries.find(claim->key_hash(), claim->key());
    if (!at)
        return create_outcome::busy();
    refresh(home, *at, now, after);
    if (at->find(*claim))
        return create_in(home, std::move(claim), now, after);
    holder* const held = at->mode == claim->mode() ? find_by_ticket(*at, ticket) : nullptr;
    if (!held) {
        remove_if_empty(home, *at);
        return create_outcome::busy();
    }
    const auto expires = expiry(now, claim->ttl());
    if (expires < held->expires)
        wake_all(*at, after);
    after.make_room_for_claim();
    // The new holder may belong to another group.
    home.groups.add(claim->owner().group, *at);
    home.groups.remove(held->data().group, *at);
    after.drop(std::exchange(held->owner, std::move(claim)));
    held->expires = expires;
    held->created = held->renewed = now;
    held->fence = ++home.last_fence;
    at->earliest = std::min(at->earliest, expires);
    return create_outcome::granted(held->fence);
}

} // namespace colock::inline v0::memory
