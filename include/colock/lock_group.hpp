// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/lock.hpp>
#include <colock/stats.hpp>

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock {

/// One key of an `acquire_all`.
struct group_member
{
    std::string key;
    /// Default: that of the options.
    std::optional<lock_mode> mode;

    group_member(std::string name, std::optional<lock_mode> its_mode = {}) : key(std::move(name)), mode(its_mode) {}
    group_member(const char* name, std::optional<lock_mode> its_mode = {}) : key(name), mode(its_mode) {}
};

/// The keys of an `acquire_all`: `{"a", {"b", lock_mode::shared}}`, or a vector of keys.
class group_members
{
public:
    group_members(std::initializer_list<group_member> members) : members_(members) {}
    group_members(std::vector<group_member> members) : members_(std::move(members)) {}
    group_members(std::vector<std::string> keys)
    {
        members_.reserve(keys.size());
        for (auto& key : keys)
            members_.emplace_back(std::move(key));
    }

    [[nodiscard]] std::vector<group_member>& all() noexcept { return members_; }
    [[nodiscard]] const std::vector<group_member>& all() const noexcept { return members_; }

private:
    std::vector<group_member> members_;
};

/// Locks that are held together under one group id: move-only, released newest first when it dies.
///
/// One that `locker::group(id)` made acts on all locks of that id in the backend: on those that were acquired through
/// it, and on what other handles and processes hold. Any other acts on its own alone. The destructor releases only what
/// was acquired through this handle.
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

    /// Adds one more lock, outside the canonical order of locker::acquire_all: it can deadlock with acquire_all.
    /// Two groups that grow in different orders can deadlock with each other. Give the retry policy a `total_time`. On
    /// failure the group is unchanged.
    /// \throws as locker::acquire; validation_error `invalid_options` for a key that is in this handle already
    [[nodiscard]] asio::awaitable<void> acquire(std::string key, acquire_options options = {});

    /// Takes one lock out of this handle, which acts on it no longer unless by id: it is in the group still. So one of
    /// several can be released, extended or detached by itself.
    /// \throws validation_error `invalid_options`: the handle has no lock of that key
    [[nodiscard]] lock take(std::string_view key);

    /// Extends all, all at once, and returns the status of each, newest first; a failure does not stop the others. A
    /// cancellation ends the wait alone: what was extended stays so, as each `ttl()` tells.
    ///
    /// Those of others that share its id follow in the list. Their time is never cut: it becomes at least `ttl`. Those
    /// that were detached go on for the new time; a handle that is still attached elsewhere ends its lease by its own
    /// clock all the same, and takes the lock back then.
    /// \throws validation_error `invalid_ttl`: out of range, 0, or one of them has no ttl; none is extended then.
    /// `unsupported`: by id on a backend where only a lock's own session can extend it (ZooKeeper)
    /// \throws extend_error `not_held`: by id, and there is no lock of that id; `unavailable`, `outcome_unknown`: by
    /// id, and the backend did not answer
    [[nodiscard]] asio::awaitable<std::vector<lock_report>> extend(std::chrono::milliseconds ttl);

    /// Releases all, newest first, without waiting for one after the other, and returns the status of each in that
    /// order: `errc::not_held` for one that had expired or was taken. The group is empty afterwards. By id, the locks
    /// of others follow; their holders hear `lost` as after `locker::break_lock`. An id that nobody holds a lock of is
    /// no error: the list is empty then. If it is cancelled, one's own are released all the same, those of others only
    /// if the backend was asked already.
    /// \throws release_error `unavailable`, `outcome_unknown`: by id, and the backend did not answer for those of
    /// others; one's own have been released then, as far as it could be
    [[nodiscard]] asio::awaitable<std::vector<lock_report>> release();

private:
    friend class detail::core;

    void drop() noexcept;

    std::shared_ptr<detail::core> core_;
    std::string id_;
    std::vector<lock> locks_;
    /// It acts on all locks of its id, wherever they are held.
    bool by_id_ = false;
};

} // namespace colock
