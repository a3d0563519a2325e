// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Creation of several locks in one step.
#include "memory/holders.hpp"

#include <utility>

namespace colock::inline v0::memory {

std::vector<std::unique_lock<detail::light_mutex>> store::lock_shards_of(const std::vector<claim_ptr>& claims)
{
    std::array<bool, std::size_t{1} << shard_bits> is_needed{};
    for (const auto& each : claims)
        is_needed[static_cast<std::size_t>(&shard_of(each->key_hash()) - shards_.data())] = true;
    std::vector<std::unique_lock<detail::light_mutex>> locked;
    locked.reserve(shards_.size());
    for (std::size_t i = 0; i < shards_.size(); ++i) {
        if (is_needed[i])
            locked.emplace_back(shards_[i].mutex);
    }
    return locked;
}

create_all_outcome store::create_all(const std::vector<claim_ptr>& claims)
{
    create_all_outcome outcome{.status = create_status::granted};
    if (claims.empty())
        return outcome;
    outcome.fences.reserve(claims.size());
    const auto now = now_of(*claims.front());
    store_actions after;
    sweep_if_due(now, after);
    const auto guards = lock_shards_of(claims);
    for (std::size_t i = 0; i < claims.size(); ++i) {
        if (auto refusal = refuse_in(shard_of(claims[i]->key_hash()), *claims[i], now, after))
            return {.status = create_status::busy, .which = i, .refusal = std::move(*refusal)};
    }
    for (const auto& each : claims)
        outcome.fences.push_back(create_in(shard_of(each->key_hash()), each, now, after).fence);
    return outcome;
}

std::optional<create_outcome> store::refuse_in(shard& home, claim& claim, time_point now, store_actions& after)
{
    entry* const at = home.entries.find(claim.key_hash(), claim.key());
    if (!at)
        return std::nullopt;
    refresh(home, *at, now, after);
    if (at->empty()) {
        home.entries.remove(*at);
        return std::nullopt;
    }
    if (at->find(claim))
        return std::nullopt;
    return make_busy_outcome(*at, claim, now);
}

} // namespace colock::inline v0::memory
