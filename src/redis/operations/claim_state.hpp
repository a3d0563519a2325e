// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/client.hpp"
#include "remote/adapter/claim_slot.hpp"
#include "remote/adapter/stored_owner.hpp"
#include "remote/requests/lost_requests.hpp"
#include "remote/requests/wait_sources.hpp"

#include <colock/spi/claim.hpp>

#include <cstdint>
#include <optional>

namespace colock::redis::detail {

/// What the adapter keeps with a claim that did not go the short way.
struct claim_state
{
    /// Creates of this claim that were sent, and not answered.
    remote::doubts creates{};
    /// The same of extensions: they create nothing, but set the time that is left.
    remote::doubts extends{};
    /// Of the last create that was answered.
    bool granted = false;
    /// A writer's intent of ours may exist.
    bool intent = false;
    /// Part of a shared holder's name, so it stays.
    std::int64_t created = remote::wall_clock_ms();
    std::optional<remote::interest> source{};
};

/// Null for a claim that went the short way.
[[nodiscard]] inline claim_state* find_state(const claim& of) noexcept
{
    return remote::claim_slot<claim_state>::find(of);
}
[[nodiscard]] inline claim_state& state_of(claim& of)
{
    return remote::claim_slot<claim_state>::make(of);
}

/// An answer came on `link`: lets go of every doubt that it has disproved. Requests of one connection are carried out
/// in order; what another has left is told by the client.
void note_answer(const client& owner, claim& of, remote::connection_number server_connection);

} // namespace colock::redis::detail
