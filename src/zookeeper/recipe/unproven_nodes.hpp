// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/claim.hpp>

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

/// The nodes of a session that were granted or removed since its last answered beat. If the servers' data are replaced
/// by an older copy that contains this beat, the copy contains everything before the beat, so only these nodes may be
/// missing, or may be back.
///
/// Thread safety: none.
class unproven_nodes
{
public:
    /// The node holds a lock.
    void note_granted(const std::string& node, claim_ptr holder) { note(node, {.holder = std::move(holder)}); }
    void note_removed(const std::string& node) { note(node, {}); }
    /// The node is created again, and is not verified.
    void forget(const std::string& node)
    {
        before_.erase(node);
        after_.erase(node);
    }

    /// A beat is sent, and proves all changes that were noted before.
    void on_beat_sent()
    {
        // Changes before an unanswered beat are proven by the next one. Later changes of the same nodes replace them.
        after_.merge(before_);
        before_ = std::exchange(after_, {});
    }
    void on_beat_answered() noexcept { before_.clear(); }
    /// Number of nodes whose changes the last beat does not prove, whether it is answered or not.
    [[nodiscard]] std::size_t count_after_beat() const noexcept { return after_.size(); }

    // Verification, after the session was resumed. No beat may be sent meanwhile.
    void begin_verification()
    {
        after_.merge(before_);
        before_.clear();
        for (auto& [node, state] : after_)
            state.is_requested = false;
    }
    /// Calls `request` with the next nodes that have to be verified, at most `max_count`.
    template <class Request>
    void for_next(std::size_t max_count, Request request)
    {
        for (auto& [node, state] : after_) {
            if (max_count == 0)
                return;
            if (std::exchange(state.is_requested, true))
                continue;
            --max_count;
            request(node);
        }
    }
    /// Returns the claim whose lock the node holds; null if the node was removed.
    [[nodiscard]] claim_ptr holder_of(const std::string& node) const
    {
        const auto found = after_.find(node);
        return found == after_.end() ? nullptr : found->second.holder;
    }

private:
    struct change
    {
        /// Null if the node was removed.
        claim_ptr holder{};
        bool is_requested = false;
    };

    void note(const std::string& node, change newest)
    {
        // The older change is dropped, because its claim would keep the session in use.
        before_.erase(node);
        after_.insert_or_assign(node, std::move(newest));
    }

    /// Changes before and after the last beat was sent. The maps stay small, because many changes cause an early beat.
    std::unordered_map<std::string, change> before_;
    std::unordered_map<std::string, change> after_;
};

} // namespace colock::inline v0::zookeeper::detail
