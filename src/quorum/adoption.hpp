// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "quorum/node_claim.hpp"
#include "quorum/vote.hpp"

#include <colock/spi/adapter.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace colock::inline v0::quorum {

/// One attempt to adopt the lock of a ticket.
///
/// The nodes for which the ticket has a part are asked alone, one after the other, until one of them grants or refuses.
/// A refusal ends the attempt. After a grant, the remaining nodes are asked together. So the first node decides between
/// several adopters of one ticket. If all nodes were asked together, each adopter could be granted a part that another
/// one needs, and then none would have a majority.
///
/// A node that fails is replaced by the next one. Its adapter reports a failure at the latest after its operation
/// timeout, so no other time limit is needed.
///
/// Thread safety: the answers may arrive on any thread.
class adoption final : public std::enable_shared_from_this<adoption>
{
public:
    /// \param parts the part of the ticket for each node; empty if the node has none
    adoption(std::vector<std::shared_ptr<node_claim>> node_claims, std::vector<std::string> parts,
        completion<create_outcome> done);

    void start();

private:
    /// Asks the next node alone.
    void ask_next();
    void on_answer(const create_outcome& outcome);
    /// Asks all nodes that have not been asked.
    void ask_rest();
    /// Counts each remaining node as a refusal, without asking it.
    void refuse_rest();
    void count(const create_outcome& outcome);

    const std::vector<std::shared_ptr<node_claim>> node_claims_;
    std::vector<std::string> parts_;
    /// Index of the first node that has not been asked.
    std::size_t next_ = 0;
    vote<create_outcome> votes_;
};

} // namespace colock::inline v0::quorum
