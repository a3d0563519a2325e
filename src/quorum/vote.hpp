// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "quorum/tally.hpp"

#include <colock/spi/completion.hpp>

#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace colock::inline v0::quorum {

struct vote_count : tally
{
    /// Shortest remaining time, and the owner of a lock and its host, as reported by the nodes that answered "busy".
    lease_clock::duration retry_after{0};
    std::string holder{};
    std::string holder_host{};
    /// Smallest `claim::late_ttl` of the nodes that said yes.
    std::chrono::milliseconds late_ttl = std::chrono::milliseconds::max();
};

/// Collects the answers of the nodes to one question, and completes with the first answer that decides.
///
/// Thread safety: all members may be called from any thread.
template <class Outcome>
class vote
{
public:
    /// Returns nothing if the question is not decided yet.
    using judge = std::optional<Outcome> (*)(const vote_count&);

    vote(std::size_t nodes, judge decide, completion<Outcome> done) : decide_(decide), done_(std::move(done))
    {
        counted_.nodes = nodes;
    }

    /// Counts an answer.
    /// \param note updates the count
    template <class Note>
    void count(Note note)
    {
        completion<Outcome> ended;
        std::optional<Outcome> outcome;
        {
            const std::lock_guard guard(mutex_);
            note(counted_);
            if (!done_)
                return;
            outcome = decide_(counted_);
            if (!outcome)
                return;
            ended.swap(done_);
        }
        ended(std::move(*outcome));
    }

private:
    std::mutex mutex_;
    vote_count counted_;
    const judge decide_;
    completion<Outcome> done_;
};

} // namespace colock::inline v0::quorum
