// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "quorum/node_claim.hpp"
#include "quorum/one_shot_event.hpp"
#include "quorum/vote.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>
#include <vector>

namespace colock::inline v0::quorum {

/// One attempt to acquire the lock: a claim on each node. Stored in the slot of the claim that it serves.
///
/// Thread safety: none; belongs to the strand of the quorum.
struct round
{
    explicit round(one_shot_event::list& list) : awaited(list) {}

    /// Ends the use of the round. The node claims are released in the background.
    void retire();

    /// List of the adapter, which exists as long as the node claims.
    one_shot_event::list& awaited;
    std::vector<std::shared_ptr<node_claim>> node_claims{};
    /// True once the round was refused or released, or is about to be. Then the next attempt uses a new round.
    bool is_over = false;
};

/// Asks all nodes of a round at the same time. Returns as soon as their answers decide by the rule `decide`. The node
/// claims handle later answers.
/// \param ask sends the question to one node
template <class Outcome, class Ask>
asio::awaitable<vote_count> ask_all(const round& current, vote::judge decide, Ask ask)
{
    const auto votes = std::make_shared<vote>(current.awaited, current.node_claims.size(), decide);
    for (const auto& each : current.node_claims)
        ask(*each, vote::counter<Outcome>(votes));
    co_return co_await votes->decision();
}

/// Asks the nodes to adopt their parts of a ticket, and returns as soon as the answers decide.
///
/// One node is asked alone, then all others together if it grants its part. A refusal ends the attempt. So the first
/// node decides between several adopters of one ticket. If all nodes were asked together, each adopter could be granted
/// a part that another one needs, and then none would have a majority.
///
/// A node that fails is replaced by the next one. Its adapter reports a failure at the latest after its operation
/// timeout, so no other time limit is needed. Each silent node costs one operation timeout.
/// \param parts the part of the ticket for each node; empty if the node has none
[[nodiscard]] asio::awaitable<vote_count> adopt(const round& current, std::vector<std::string> parts);

} // namespace colock::inline v0::quorum
