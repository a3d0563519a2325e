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

namespace colock::quorum {

struct vote_count : tally
{
    /// What the busy told: the shortest time, and some holder.
    lease_clock::duration retry_after{0};
    std::string holder{};
    /// Of those that said yes, the smallest `claim::late_ttl`.
    std::chrono::milliseconds late_ttl = std::chrono::milliseconds::max();
};

/// Collects the nodes' answers to one question, and ends with the first that decides.
///
/// Thread safety: all members may be called from any thread.
template <class Outcome>
class vote
{
public:
    /// Empty: not decided yet.
    using judge = std::optional<Outcome> (*)(const vote_count&);

    vote(std::size_t nodes, judge decide, completion<Outcome> done) : decide_(decide), done_(std::move(done))
    {
        counted_.nodes = nodes;
    }

    /// `note` writes the answer down.
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

} // namespace colock::quorum
