// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/operations/claim_state.hpp"

namespace colock::inline v0::zookeeper::detail {

void claim_state::use_session(session_manager& all)
{
    if (session != all.number()) {
        forget_node(all);
        indexed = false;
    }
    session = all.number();
    if (!session_ref)
        session_ref = all.users().enter();
}

void claim_state::forget_node(session_manager& all)
{
    if (!node.empty() && session == all.number())
        all.note_removed(node);
    node.clear();
    session_ref.reset();
    fence = 0;
    granted = false;
}

void claim_state::stop_waiting() noexcept
{
    source.reset();
    watched.clear();
    predecessor.clear();
}

void settle_creations(const session_manager& all, claim& claim)
{
    auto* const state = find_state(claim);
    if (state && state->creates.settle(all.number(), all.lost()))
        claim.clear_in_doubt();
}

} // namespace colock::inline v0::zookeeper::detail
