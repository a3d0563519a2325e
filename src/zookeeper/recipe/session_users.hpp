// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace colock::zookeeper::detail {

/// Who has a node in the session in use, or may have, and which nodes hold a lock.
///
/// Thread safety: none; belongs to the strand.
class session_users
{
public:
    /// A session is not closed while somebody keeps one of its.
    using session_ref = std::shared_ptr<const void>;

    [[nodiscard]] session_ref enter() const noexcept { return stays_; }
    [[nodiscard]] bool any() const noexcept { return stays_.use_count() > 1; }

    /// It holds a lock, until it is gone.
    void note_granted(const std::string& node) { granted_.insert(node); }
    void forget_granted(const std::string& node) noexcept { granted_.erase(node); }

    /// All that hold a lock hold it no more, whatever they may think at the server.
    void lose()
    {
        if (!granted_.empty())
            lost_.push_back(std::exchange(granted_, {}));
    }
    /// One of those; empty: there is none.
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
    [[nodiscard]] bool any_lost() const noexcept { return !lost_.empty(); }

    /// What was in the session is over with it.
    void clear()
    {
        stays_ = std::make_shared<int>();
        granted_.clear();
        lost_.clear();
    }

private:
    session_ref stays_ = std::make_shared<int>();
    /// Not hashed: a table that grows moves all of it at once.
    std::set<std::string> granted_;
    /// Those of one loss after the other; none is empty.
    std::deque<std::set<std::string>> lost_;
};

} // namespace colock::zookeeper::detail
