// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "quorum/majority.hpp"

#include <colock/spi/adapter.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>

namespace colock::inline v0::quorum {

/// Merges the lists of the nodes. A lock is held if a majority lists the same holder. A list has no tokens, and the
/// tokens differ between nodes, so holders are compared by their descriptions.
///
/// Thread safety: none; belongs to the strand of the quorum.
class list_merger
{
public:
    explicit list_merger(std::size_t nodes) : needed_(majority_of(nodes)) {}

    /// Must be called once for each node.
    void add(list_outcome answer);
    [[nodiscard]] list_outcome result() &&;

private:
    struct entry
    {
        lock_status status{};
        std::size_t nodes = 0;
        /// Number of the answer that was counted last. A node has one vote for a holder, even if it lists the holder
        /// repeatedly.
        std::size_t counted_in_answer = 0;
    };
    void count_holder(lock_status&& status);

    const std::size_t needed_;
    std::size_t answered_ = 0;
    failure_ptr error_;
    std::size_t answer_count_ = 0;
    /// Holders by description. Hashed, because lists may be long.
    std::unordered_map<std::string, entry> known_;
};

} // namespace colock::inline v0::quorum
