// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "quorum/node_claim.hpp"
#include "quorum/one_shot_event.hpp"
#include "quorum/tally.hpp"

#include <colock/spi/completion.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace colock::inline v0::quorum {

/// The answers to one question, and what they decide.
struct vote_count : tally
{
    void add(create_outcome outcome);
    void add(const extend_answer& answer);
    void add(const valid_outcome& outcome);
    void add(const release_outcome& outcome);

    verdict decision = verdict::open;
    /// Shortest remaining time, and the owner of a lock and its host, as reported by the nodes that answered "busy".
    lease_clock::duration retry_after{0};
    std::string holder{};
    std::string holder_host{};
    /// Smallest `claim::late_ttl` of the nodes that said yes.
    std::chrono::milliseconds late_ttl = std::chrono::milliseconds::max();
};

/// Collects the answers of the nodes to one question until they decide it.
///
/// Thread safety: none; belongs to the strand of the quorum.
class vote
{
public:
    /// Returns `verdict::open` if the question is not decided yet.
    using judge = verdict (*)(const tally&) noexcept;

    vote(one_shot_event::list& awaited, std::size_t nodes, judge decide) : decide_(decide), is_decided_(awaited)
    {
        counted_.nodes = nodes;
    }

    /// Returns a completion that counts the answer of one node.
    template <class Outcome>
    [[nodiscard]] static completion<Outcome> counter(const std::shared_ptr<vote>& votes)
    {
        return [weak = std::weak_ptr(votes)](Outcome outcome) {
            if (const auto counted = weak.lock())
                counted->count(std::move(outcome));
        };
    }
    /// Counts an answer, unless the question is decided. Allocates no memory.
    template <class Outcome>
    void count(Outcome outcome)
    {
        if (counted_.decision != verdict::open)
            return;
        counted_.add(std::move(outcome));
        counted_.decision = decide_(counted_);
        if (counted_.decision != verdict::open)
            is_decided_.set();
    }
    /// Returns the count when the question is decided.
    [[nodiscard]] asio::awaitable<vote_count> decision()
    {
        co_await is_decided_.wait();
        co_return std::move(counted_);
    }

private:
    vote_count counted_;
    const judge decide_;
    one_shot_event is_decided_;
};

} // namespace colock::inline v0::quorum
