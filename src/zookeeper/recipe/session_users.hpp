// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace colock::inline v0::zookeeper::detail {

/// Tracks whether any claim has, or may have, a node in the current session, and which nodes hold a lock.
///
/// Thread safety: none; belongs to the strand.
class session_users
{
public:
    /// A claim's reference to the session, which is not closed while a reference exists.
    using session_ref = std::shared_ptr<const void>;

    [[nodiscard]] session_ref enter() const noexcept { return references_; }
    [[nodiscard]] bool is_used() const noexcept { return references_.use_count() > 1; }

    /// Notes that the node holds a lock, until the node is gone.
    void note_granted(const std::string& node) { granted_.insert(node); }
    void forget_granted(const std::string& node) noexcept { granted_.erase(node); }

    /// Notes that all locks are lost, although their nodes may still exist at the server.
    void mark_lost()
    {
        if (!granted_.empty())
            lost_.push_back(std::exchange(granted_, {}));
    }
    /// Returns the node of a lost lock; empty if there is none.
    [[nodiscard]] std::string take_lost()
    {
        if (lost_.empty())
            return {};
        auto& first = lost_.front();
        auto taken = std::move(first.extract(first.begin()).value());
        if (first.empty())
            lost_.pop_front();
        return taken;
    }
    [[nodiscard]] bool has_lost() const noexcept { return !lost_.empty(); }

    /// Forgets a session that has ended.
    void clear()
    {
        references_ = std::make_shared<int>();
        granted_.clear();
        lost_.clear();
    }

private:
    session_ref references_ = std::make_shared<int>();
    /// Nodes that hold a lock. The set is not hashed, because a hash table that grows moves all of its elements at
    /// once.
    std::set<std::string> granted_;
    /// Nodes of lost locks, one set for each loss. No set is empty.
    std::deque<std::set<std::string>> lost_;
};

} // namespace colock::inline v0::zookeeper::detail
