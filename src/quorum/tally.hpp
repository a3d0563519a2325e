// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "quorum/majority.hpp"

#include <colock/spi/adapter.hpp>

#include <cstddef>
#include <string>

namespace colock::inline v0::quorum {

/// Decision after some of the nodes have answered a question.
enum class verdict : unsigned char
{
    /// A missing answer may still decide.
    open,
    yes,
    no,
    /// No majority answered.
    failed,
};

/// Answers of the nodes to one question so far. A node can fail in three ways, which differ in what they leave on the
/// node and in whether a retry makes sense.
struct tally
{
    std::size_t nodes = 0;
    std::size_t yes = 0;
    std::size_t no = 0;
    /// Number of nodes that failed and have certainly not executed the request.
    std::size_t unavailable = 0;
    /// Number of nodes that did not answer. They may have executed the request, or may execute it later.
    std::size_t unknown = 0;
    /// Number of nodes that refused the request, and would refuse a retry too.
    std::size_t refused = 0;
    /// The first failure of each kind.
    failure_ptr unavailable_failure{};
    failure_ptr unknown_failure{};
    failure_ptr refused_failure{};

    void add_failure(const failure_ptr& failure);
    /// Counts an answer. `failure` is used only if the node has failed.
    void add(bool is_yes, bool has_failed, const failure_ptr& failure);

    [[nodiscard]] std::size_t needed() const noexcept { return majority_of(nodes); }
    [[nodiscard]] std::size_t answered() const noexcept { return yes + no; }
    [[nodiscard]] std::size_t failed() const noexcept { return unavailable + unknown + refused; }
    [[nodiscard]] std::size_t missing() const noexcept { return nodes - answered() - failed(); }

    /// Returns the failure of the question as a whole. The code is `errc::outcome_unknown` only if a majority may have
    /// said yes. The code is that of the first refusal only if the other nodes are too few for a majority. Otherwise
    /// the code is `errc::unavailable`, because a retry may succeed.
    [[nodiscard]] failure_ptr failure() const;
};

/// Decides a create. `yes`: granted. `no`: a node is busy, and a majority has answered. A busy node alone does not
/// decide while a majority is missing, because it may only hold a remainder of an expired lock.
[[nodiscard]] verdict judge_create(const tally& tally) noexcept;

/// Decides whether a majority holds the lock, for extend and is_valid. `no`: no majority can hold it.
[[nodiscard]] verdict judge_held(const tally& tally) noexcept;

/// Decides an adoption as `judge_held` does. A failure is decided only after all nodes have answered, because a part
/// that was adopted must not be forgotten.
[[nodiscard]] verdict judge_adopt(const tally& tally) noexcept;

/// Decides a release. If a majority of the nodes holds nothing, no majority can hold the lock. `yes`: a majority may
/// have held the lock before. `no`: no majority has held it.
[[nodiscard]] verdict judge_release(const tally& tally) noexcept;

} // namespace colock::inline v0::quorum
