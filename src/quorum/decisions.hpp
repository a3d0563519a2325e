// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "quorum/node_claim.hpp"
#include "quorum/vote.hpp"

#include <colock/spi/adapter.hpp>

#include <optional>

namespace colock::inline v0::quorum {

// For each operation, `count_` adds the answer of a node to a vote, and `decide_` returns the outcome for the caller
// once it is decided. The rules for majorities are in tally.hpp.

void count_create(vote_count& counted, const create_outcome& outcome);
[[nodiscard]] std::optional<create_outcome> decide_create(const vote_count& so_far);

/// Decides by the same rule as `decide_extend`: if no majority can hold the lock, the outcome is busy. A failure
/// is decided only after all nodes have answered, because a part that was adopted must not be forgotten.
/// The answers are counted by `count_create`.
[[nodiscard]] std::optional<create_outcome> decide_adopt(const vote_count& so_far);

void count_extend(vote_count& counted, const extension& answer);
[[nodiscard]] std::optional<extension> decide_extend(const vote_count& so_far);

void count_valid(vote_count& counted, const valid_outcome& outcome);
[[nodiscard]] std::optional<valid_outcome> decide_valid(const vote_count& so_far);

void count_release(vote_count& counted, const release_outcome& outcome);
[[nodiscard]] std::optional<release_outcome> decide_release(const vote_count& so_far);

} // namespace colock::inline v0::quorum
