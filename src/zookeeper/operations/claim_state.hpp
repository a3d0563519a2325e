// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/adapter/claim_slot.hpp"
#include "remote/requests/lost_requests.hpp"
#include "remote/requests/wait_sources.hpp"
#include "zookeeper/session/session_manager.hpp"

#include <colock/spi/claim.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace colock::inline v0::zookeeper::detail {

/// State that the adapter keeps for a claim.
struct claim_state
{
    /// Session in which the claim has a node, or may have one.
    remote::connection_number session = 0;
    /// Keeps the session open while the claim may have a node in it.
    session_users::session_ref session_ref{};
    /// Path of the claim's node; empty if none is known.
    std::string node{};
    /// Number of the transaction that created the node.
    std::uint64_t fence = 0;
    /// The claim was the first in the lock queue.
    bool granted = false;
    /// The creation of the claim's index node was sent in `session`, so the index node exists or may exist.
    bool indexed = false;
    /// Creations that were sent and not answered.
    remote::unsettled_requests creates{};

    /// Event source that the claim has to wait for, as `watches` names it; empty if it has to wait for none.
    std::string predecessor{};
    /// Event source that `source` refers to.
    std::string watched{};
    /// Interest of the claim in the events of `watched`.
    std::optional<remote::source_subscription> source{};
    /// The last wait ended without an event, so the next attempt only checks whether anything has changed.
    bool only_polls = false;

    /// Notes that the claim may have a node in the current session. Its nodes of an older session are gone, or in
    /// doubt.
    void use_session(session_manager& all);
    /// Notes that the claim has no node.
    void forget_node(session_manager& all);
    void stop_waiting() noexcept;
};

/// Returns null for a claim that was never sent.
[[nodiscard]] inline claim_state* find_state(const claim& claim) noexcept
{
    return remote::claim_slot<claim_state>::find(claim);
}
[[nodiscard]] inline claim_state& state_of(claim& claim)
{
    return remote::claim_slot<claim_state>::make(claim);
}

/// Settles the unanswered creations of a claim. Must be called when the current session cannot contain an unknown node
/// of the claim: nothing was sent for the claim in this session, or the folder was listed after all that was sent, and
/// each node in the list is known or removed.
void settle_creations(const session_manager& all, claim& claim);

} // namespace colock::inline v0::zookeeper::detail
