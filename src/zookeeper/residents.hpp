// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <memory>
#include <string>
#include <unordered_set>
#include <utility>

namespace colock::zookeeper::detail {

/// Who has a node in the session in use, or may have, and which nodes hold a lock.
///
/// Thread safety: none; belongs to the strand.
class residents
{
public:
    /// A session is not closed while somebody keeps one of its.
    using stay = std::shared_ptr<const void>;

    [[nodiscard]] stay enter() const noexcept { return stays_; }
    [[nodiscard]] bool any() const noexcept { return stays_.use_count() > 1; }

    /// It holds a lock, until it is gone.
    void note_granted(const std::string& node) { granted_.insert(node); }
    void forget_granted(const std::string& node) noexcept { granted_.erase(node); }

    /// All that hold a lock hold it no more, whatever they may think at the server.
    void lose() { lost_.merge(granted_); }
    /// One of those; empty: there is none.
    [[nodiscard]] std::string take_lost()
    {
        return lost_.empty() ? std::string() : std::move(lost_.extract(lost_.begin()).value());
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
    stay stays_ = std::make_shared<int>();
    std::unordered_set<std::string> granted_;
    std::unordered_set<std::string> lost_;
};

} // namespace colock::zookeeper::detail
