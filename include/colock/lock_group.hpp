// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/async_functions.hpp>
#include <colock/detail/export.hpp>
#include <colock/keys.hpp>
#include <colock/lock.hpp>
#include <colock/stats.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::inline v0 {

/// A lock of a group whose lease has ended; see lock_group::lost.
struct lost_lock
{
    /// Key of the lock.
    std::string key{};
    /// Why its lease ended. `released`, if the lock was released or detached by this process.
    lost_reason reason = lost_reason::released;
};

/// Locks that are held together under one group id. Move-only; the destructor releases them, the newest first.
///
/// A handle that was made by `locker::group(id)` acts on all locks with that id in the backend: on the locks that were
/// acquired through this handle, and on the locks of other handles and processes. Every other handle acts only on the
/// locks that it contains. The destructor releases only the locks that were acquired through this handle.
///
/// An empty group has no locks. A default-constructed or moved-from group also has no locker: its `acquire` and `lost`
/// fail with validation_error `invalid_options`, its `extend` and `release` return an empty list. Its `async_`
/// functions throw `invalid_options` at the call, because there is no executor on which to complete.
///
/// The group must not be moved or destroyed between the call of an `async_` function and the initiation of its
/// operation. During an `async_acquire`, it must not be moved or destroyed until the operation completes.
///
/// Thread safety: distinct objects: safe. Shared objects: unsafe.
///
/// The class is `[[nodiscard]]` for the same reason as lock.
class COLOCK_EXPORT [[nodiscard]] lock_group
{
public:
    /// Makes an empty group without an id or a locker. It cannot acquire locks.
    lock_group() noexcept = default;
    /// Moves the group. `other` is empty afterwards.
    lock_group(lock_group&& other) noexcept = default;
    /// Releases the current locks in the background, as the destructor does, and takes over `other`.
    lock_group& operator=(lock_group&& other) noexcept;
    /// Starts the release of the locks that were acquired through this handle, and returns at once.
    ~lock_group();

    /// Returns the id under which other processes can find these locks (`filter::group`).
    [[nodiscard]] const std::string& id() const noexcept { return id_; }
    /// Returns the locks in the order in which they were acquired.
    [[nodiscard]] const std::vector<lock>& locks() const noexcept { return locks_; }
    /// Returns the number of locks of this handle.
    [[nodiscard]] std::size_t size() const noexcept { return locks_.size(); }
    /// Returns whether this handle contains no lock.
    [[nodiscard]] bool empty() const noexcept { return locks_.empty(); }
    /// Returns whether all locks of this handle are held; false for an empty group.
    [[nodiscard]] bool held() const noexcept;

    /// Acquires one more lock. On failure the group is unchanged.
    ///
    /// The lock is acquired outside the canonical order of locker::acquire_all, so it can deadlock with acquire_all.
    /// Two groups that grow in different orders can deadlock with each other. Limit the wait: `{.retry = within(5s)}`.
    /// \throws validation_error `invalid_options` if the handle already contains the key. Otherwise, the exceptions of
    ///     locker::acquire.
    [[nodiscard]] asio::awaitable<void> acquire(key_name key, acquire_options options = {});

    /// Returns the lock of this handle with this key, for example for its fence. The reference is valid until the group
    /// is changed or moved.
    /// \throws validation_error `invalid_options`: the handle has no lock with this key
    [[nodiscard]] const lock& at(std::string_view key) const;
    /// Moves one lock out of this handle, so that it can be released, extended or detached separately. The lock keeps
    /// the group id: a handle that acts by id still acts on it.
    /// \throws validation_error `invalid_options`: the handle has no lock with this key
    [[nodiscard]] lock take(std::string_view key);

    /// Extends all locks at the same time, and returns the status of each, the newest first. A failure does not stop
    /// the other extensions. A cancellation ends only the wait: a lock that was extended stays extended, as its `ttl()`
    /// shows.
    ///
    /// A handle that acts by id also extends the locks of others with this id, which follow in the list. Their
    /// remaining time is never shortened: it becomes at least `ttl`. On a Redis Cluster, this is not one step, see
    /// docs/redis.md. A detached lock is held for the new time. If
    /// another handle still holds the lock, that handle ends its lease at its own deadline, and releases the lock then.
    /// \throws validation_error `invalid_ttl`: `ttl` is out of range or 0, or one of the locks has no ttl. No lock is
    ///     extended. `unsupported`: by id, on a backend where only the session of a lock can extend it (ZooKeeper)
    /// \throws extend_error `not_held`: by id, and no lock has that id. `unavailable`, `outcome_unknown`: by id, and
    ///     the backend did not answer
    [[nodiscard]] asio::awaitable<std::vector<lock_report>> extend(std::chrono::milliseconds ttl);

    /// Starts the releases of all locks, the newest first, and waits until all have ended. Returns the status of each
    /// in that order: `errc::not_held` for a lock that had expired or was taken. The group is empty afterwards.
    ///
    /// A handle that acts by id also releases the locks of others with this id, which follow in the list. Their holders
    /// receive `lost`, as after `locker::break_lock`. If no lock has the id, the list is empty; that is not an error.
    /// On a Redis Cluster, this is not one step: after `outcome_unknown`, some of the locks may be released.
    ///
    /// A cancellation does not keep the locks of this handle: they are released in the background. The locks of others
    /// are released only if the request was sent to the backend already.
    /// \throws release_error `unavailable`, `outcome_unknown`: by id, and the backend did not answer for the locks of
    ///     others. The locks of this handle have been released as far as possible.
    [[nodiscard]] asio::awaitable<std::vector<lock_report>> release();

    /// Completes as soon as the lease of any lock of this handle has ended, with the key and the reason; at once if one
    /// has ended already. If several have ended, the lock that was acquired first is reported. The wait covers exactly
    /// the locks that the handle contains at the call.
    ///
    /// Cancellation: all types end the wait with `operation_aborted`.
    /// \throws validation_error `invalid_options`: the group has no locks
    [[nodiscard]] asio::awaitable<lost_lock> lost() const;

    /// `void(error_code)`
    template <detail::token_or_handler<void(error_code)> CompletionToken = default_token>
    auto async_acquire(key_name key, acquire_options options, CompletionToken&& completion_token = CompletionToken())
    {
        return detail::async_operation<void>(
            executor(),
            [this, key = std::move(key.name), options = std::move(options)](
                detail::operation_handler<void> handler) mutable {
                start_acquire(std::move(key), std::move(options), std::move(handler));
            },
            std::forward<CompletionToken>(completion_token));
    }
    template <detail::token_or_handler<void(error_code)> CompletionToken = default_token>
    auto async_acquire(key_name key, CompletionToken&& completion_token = CompletionToken(),
        std::source_location location = std::source_location::current())
    {
        return async_acquire(
            std::move(key), acquire_options{.location = location}, std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, std::vector<lock_report>)`
    template <detail::token_or_handler<void(error_code, std::vector<lock_report>)> CompletionToken = default_token>
    auto async_extend(std::chrono::milliseconds ttl, CompletionToken&& completion_token = CompletionToken())
    {
        return detail::async_coroutine<std::vector<lock_report>>(
            executor(), [this, ttl] { return extend(ttl); }, std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, std::vector<lock_report>)`
    template <detail::token_or_handler<void(error_code, std::vector<lock_report>)> CompletionToken = default_token>
    auto async_release(CompletionToken&& completion_token = CompletionToken())
    {
        return detail::async_coroutine<std::vector<lock_report>>(
            executor(), [this] { return release(); }, std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, lost_lock)`. Throws validation_error when it is called, if the group has no locks.
    template <detail::token_or_handler<void(error_code, lost_lock)> CompletionToken = default_token>
    auto async_lost(CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_operation<lost_lock>(
            executor(),
            [claims = claims(), core = core_](
                detail::operation_handler<lost_lock> handler) { start_lost(claims, core, std::move(handler)); },
            std::forward<CompletionToken>(completion_token));
    }

private:
    friend class detail::core;
    using core_ptr = std::shared_ptr<detail::core>;

    void drop() noexcept;
    /// \throws validation_error `invalid_options` if the group has no locker
    [[nodiscard]] asio::any_io_executor executor() const;
    /// \throws validation_error `invalid_options` if the group has no locks
    [[nodiscard]] std::vector<claim_ptr> claims() const;
    void start_acquire(std::string&& key, acquire_options&& options, detail::operation_handler<void> handler);
    static void start_lost(
        const std::vector<claim_ptr>& claims, const core_ptr& core, detail::operation_handler<lost_lock> handler);

    core_ptr core_;
    std::string id_;
    std::vector<lock> locks_;
    /// Whether this handle acts on all locks of its id, wherever they are held.
    bool by_id_ = false;
};

} // namespace colock::inline v0
