// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/lock.hpp>
#include <colock/stats.hpp>

#include <memory>
#include <string>
#include <vector>

namespace colock {

/// Locks that are held together under one group id: move-only, released newest first when it dies.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
///
/// `[[nodiscard]]`, as lock is.
class [[nodiscard]] lock_group
{
public:
    lock_group() noexcept = default;
    lock_group(lock_group&& other) noexcept = default;
    lock_group& operator=(lock_group&& other) noexcept;
    ~lock_group();

    /// The id under which other processes see these locks (`filter::group`).
    [[nodiscard]] const std::string& id() const noexcept { return id_; }
    /// In the order in which they were acquired.
    [[nodiscard]] const std::vector<lock>& locks() const noexcept { return locks_; }
    [[nodiscard]] std::size_t size() const noexcept { return locks_.size(); }
    [[nodiscard]] bool empty() const noexcept { return locks_.empty(); }
    /// Whether every one of them is held; false for an empty group.
    [[nodiscard]] bool held() const noexcept;

    /// Adds one more lock. There is no canonical order any more: two groups that grow in different orders can wait for
    /// each other, so give such an acquire a deadline. On failure the group is unchanged.
    /// \throws as locker::acquire
    [[nodiscard]] asio::awaitable<void> acquire(std::string key, acquire_options options = {});

    /// Extends all, newest first, and returns the status of each in that order; a failure does not stop the others. A
    /// cancellation does: what was extended until then stays so, as each `ttl()` tells.
    /// \throws validation_error `invalid_ttl`: out of range, 0, or one of them has no ttl; none is extended then
    [[nodiscard]] asio::awaitable<std::vector<lock_report>> extend(std::chrono::milliseconds ttl);

    /// Releases all, newest first, and returns the status of each in that order: `errc::not_held` for one that had
    /// expired or was taken. The group is empty afterwards.
    [[nodiscard]] asio::awaitable<std::vector<lock_report>> release();

private:
    friend class detail::core;

    void drop() noexcept;

    std::shared_ptr<detail::core> core_;
    std::string id_;
    std::vector<lock> locks_;
};

} // namespace colock
