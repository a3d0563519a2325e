// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/operations/operation_client.hpp"
#include "remote/adapter/claim_slot.hpp"
#include "remote/adapter/stored_owner.hpp"
#include "remote/requests/lost_requests.hpp"
#include "remote/requests/wait_sources.hpp"

#include <colock/spi/claim.hpp>

#include <cstdint>
#include <optional>

namespace colock::inline v0::redis::detail {

/// State of a claim. Most claims are granted by their first attempt and need no such state.
struct claim_state
{
    /// Creates of this claim that were sent and not answered.
    remote::unsettled_requests creates{};
    /// Extensions that were sent and not answered. They create nothing, but change the remaining time.
    remote::unsettled_requests extends{};
    /// True if the claim may hold the lock: a create or an extension has succeeded, or an extension or the undoing of a
    /// grant has an unknown outcome. Unanswered creates are in `creates` instead.
    bool granted = false;
    /// True if a writer's intent of this claim may exist on the server.
    bool intent = false;
    /// Creation time. It is part of the stored value of a reader, so it never changes.
    std::int64_t created = remote::wall_clock_ms();
    /// True if the last attempt was answered behind ASKING, by the node that takes the slot over. The messages are then
    /// published there, and not where the claim waits.
    bool asked = false;
    /// Registration for the release events of the lock, while the claim waits.
    std::optional<remote::source_subscription> source{};
    /// The server that `source` belongs to.
    const operation_client* watched_server = nullptr;
};

/// Returns null for a claim that has made only a first attempt without a script.
[[nodiscard]] inline claim_state* find_state(const claim& claim) noexcept
{
    return remote::claim_slot<claim_state>::find(claim);
}
[[nodiscard]] inline claim_state& state_of(claim& claim)
{
    return remote::claim_slot<claim_state>::make(claim);
}

/// Called when a reply has arrived on `server_connection`. Removes the requests that the reply settles: the server
/// executes the requests of one connection in order. The client knows which requests of other connections may still
/// arrive.
void note_answer(const operation_client& owner, claim& claim, remote::connection_number server_connection);

} // namespace colock::inline v0::redis::detail
