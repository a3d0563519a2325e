// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/operations/claim_state.hpp"

namespace colock::inline v0::redis::detail {

void note_answer(const operation_client& owner, claim& claim, remote::connection_number server_connection)
{
    auto* const state = find_state(claim);
    if (!state || (state->creates.empty() && state->extends.empty())) {
        // An extension that replicas did not confirm is followed by this answer.
        claim.clear_late_ttl();
        return;
    }
    static_cast<void>(state->extends.settle(server_connection, owner.lost()));
    if (state->creates.settle(server_connection, owner.lost()))
        claim.clear_in_doubt();
    if (state->creates.empty() && state->extends.empty())
        claim.clear_late_ttl();
}

} // namespace colock::inline v0::redis::detail
