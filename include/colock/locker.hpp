// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/body.hpp>
#include <colock/detail/front.hpp>
#include <colock/lock.hpp>
#include <colock/lock_group.hpp>
#include <colock/options.hpp>
#include <colock/spi/adapter.hpp>
#include <colock/stats.hpp>

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace colock {

/// Makes locks on one backend. A cheap, copyable handle to shared state.
///
/// When the last copy goes, waiters end with `errc::shutting_down`; locks that are held stay valid.
///
/// The caller of a verb or the handler of an `async_` function may belong to another execution context than the
/// adapter, and either context may be destroyed first. If the adapter's context is destroyed, a call that waits ends
/// with `errc::shutting_down` on the caller's executor. If the caller's context is destroyed, nothing is posted to it,
/// and a lock that the call would have returned is released.
///
/// Two families, one rule: a plain verb returns `asio::awaitable<T>` and throws; with `async_` in front it takes a
/// completion token and completes with `void(error_code, T)`, on the handler's associated executor (by default
/// `get_executor()`). A result that `async_acquire`, `async_try_acquire`, or one of the `async_` functions of `lock`
/// (`async_detach` excepted) has when it is called goes through the handler's associated immediate executor, by default
/// one that posts, if the handler belongs to the locker's context. Every other completion is posted.
///
/// Cancellation of an acquire, the same for all three types: it completes promptly with `operation_aborted` and does
/// not wait for the backend. If the lock was not granted yet, nothing is held afterwards; what is under way is settled
/// in the background. If it is granted in the same instant, either the caller gets it or it is released. A plain verb
/// honours the types that its coroutine lets through, which under `co_spawn` is terminal; an `async_` function honours
/// all. A coroutine that is cancelled must run on a strand or in a one-thread context, and the signal of an `async_`
/// function must be emitted where its handler runs (Asio's own rules). A handler of another context hears of its
/// cancellation after a turn of the locker's context, which must run for that.
///
/// Errors common to all verbs that acquire:
/// - validation_error: `invalid_key` (empty, over 512 bytes, or with a NUL), `invalid_ttl`, `invalid_retry`,
///   `invalid_options` (max_holders with exclusive mode, over-long owner data), `unsupported`; nothing was sent.
/// - retry_error `retry_exhausted`: the policy ended, and the last attempt was answered with "busy".
/// - create_error: the backend's error. `unavailable` and `outcome_unknown` are failed attempts under the policy, and
///   thrown, with their cause, when it ends on one or on an attempt that has not been answered; all others
///   (`access_denied`, `misconfigured_backend`) are thrown at once; `shutting_down`. Who waits behind others of this
///   locker is told what the first of them was told.
///
/// Thread safety: distinct objects: safe. Shared objects: all but assigning and destroying is safe.
class locker
{
public:
    /// \throws validation_error if the adapter is null or the options contradict each other or the backend.
    explicit locker(std::shared_ptr<adapter> backend, locker_options options = {});

    /// The adapter's executor.
    [[nodiscard]] asio::any_io_executor get_executor() const;

    /// Waits for the lock, in arrival order among the callers of this locker.
    ///
    /// Not reentrant: who holds the key already waits like any other, for its own release or until its own lock has
    /// expired; so does an exclusive acquire beside one's own shared lock.
    [[nodiscard]] asio::awaitable<lock> acquire(std::string key, acquire_options options = {}) const;
    /// Makes one attempt and never waits; empty if the lock is busy or others of this locker wait for it, or ask for it
    /// exclusively: then the error that keeps these waiting, if there is one. The retry policy is ignored.
    [[nodiscard]] asio::awaitable<std::optional<lock>> try_acquire(std::string key, acquire_options options = {}) const;
    /// Acquires all or none. Each key has the mode of the options or one of its own; `max_holders` is for those that
    /// are shared.
    ///
    /// If the backend can (`capabilities::several`), and nobody of this locker waits for one of the keys, it first asks
    /// for all of them in one step. Otherwise it acquires them in canonical order (sorted, duplicates removed) and
    /// holds those that were granted. Callers of acquire_all cannot deadlock with each other, because all use that
    /// order. The place in a key's queue is kept until the key is granted, so that the group cannot starve where
    /// waiters have an order: within a locker, and with `capabilities::fifo` among all.
    ///
    /// A caller that nests locks by itself (it holds "b" and acquires "a") can deadlock with it, and so can
    /// lock_group::acquire. Give the retry policies of both a `total_time`, which ends the deadlock on both sides.
    ///
    /// Until the group is complete, its leases are renewed whatever `renewal` says. `max_hold` and manual leases count
    /// from completion, when each lease with less than two thirds of its ttl left is extended. A lease that is lost on
    /// the way gives everything back; that is a failed attempt (`unavailable`), and the group starts again after the
    /// policy's delay. If the process crashes while it waits, locks without a ttl that it held stay locked.
    ///
    /// One retry policy is for all keys: a grant neither counts nor resets it, and `never()` ends with the first
    /// refusal. A cancellation, a failure or a shutdown gives everything back in the background. The observer,
    /// `stats()` and `held_locks()` learn of the locks at completion; the whole counts as one wait.
    /// \throws validation_error `invalid_options` for an empty list, see acquire_global(); for a key that is named
    /// twice with different modes.
    [[nodiscard]] asio::awaitable<lock_group> acquire_all(group_members keys, acquire_options options = {}) const;
    /// The one lock without a key of its own: the key `global_key`. It does not exclude other keys.
    [[nodiscard]] asio::awaitable<lock_group> acquire_global(acquire_options options = {}) const;
    static constexpr const char* global_key = "colock.global";
    /// Held by the locker that purges in the background, see background_purge.
    static constexpr const char* purge_key = "colock.purge";
    /// A group to grow with `lock_group::acquire`. With an id, of 1 to 256 bytes without a NUL, it acts on all locks of
    /// that id, also on those of other processes; without one it gets an id of its own.
    /// \throws validation_error `invalid_options` for a bad id; `unsupported` with an id on a backend that cannot find
    /// the locks of a group (a quorum).
    [[nodiscard]] lock_group group(std::string id = {}) const;
    /// Goes on with a lock that `lock::detach` has given up: under a new token, with a greater fence, for the ttl of
    /// the options or, if they name none, that which it had. Its key and mode come from the ticket, and `mode` and
    /// `max_holders` of the options are ignored, as is the retry policy: it is tried until the operation timeout.
    /// Between the two the ttl runs.
    /// \throws validation_error `invalid_options`: this is no ticket, or one of another kind of backend.
    /// \throws create_error `not_held`: nothing is held under this ticket any more: it was used, or the ttl has run
    /// out. The backend's error, as of acquire.
    [[nodiscard]] asio::awaitable<lock> adopt(std::string ticket, acquire_options options = {}) const;

    /// Runs `body` under the lock and returns what it returns. The body takes `lock&` or nothing, and returns an
    /// `asio::awaitable` or a plain value (movable, no reference). A coroutine runs on a strand of the caller's
    /// executor, which is that executor itself if it is a strand of an `io_context`, a `thread_pool` or an
    /// `any_io_executor`. A body that returns a plain value is called on the caller's executor, and nothing can cancel
    /// it.
    ///
    /// The lease is renewed while the body runs. The body is cancelled (all types) for each reason to stop: a
    /// `stop_margin` before the lease can end, as soon as the loss is known, at a shutdown, and at each cancellation of
    /// the caller. A body that continues after one of these (it resets its cancellation state, or does not throw) is
    /// cancelled again by the next. A value returned before the deadline stands, also after the caller's cancellation.
    ///
    /// Returns only when the body has ended. The lock is released then, whether or not the body moved the handle away.
    /// The call ends when the release is answered, or after the operation timeout. If the caller is cancelled before
    /// that, the call ends promptly after the body: the release continues in the background, and the body's value or
    /// exception stands.
    ///
    /// Not reentrant: a body that asks for its own key again waits for itself, for as long as the policy allows, and
    /// its lease is renewed all the while. Pass the `lock&` on instead.
    /// \throws lost_error `lost`: the lease was lost before the body ended; the body's exception, if any, is nested.
    /// \throws whatever the body throws, unchanged, if the lease stood.
    template <class Body>
        requires detail::lock_body<Body>
    [[nodiscard]] asio::awaitable<detail::body_result_t<Body>> with_lock(
        std::string key, acquire_options options, Body body) const
    {
        return detail::with_lock<Body>(core(), std::move(key), std::move(options), std::move(body));
    }
    template <class Body>
        requires detail::lock_body<Body>
    [[nodiscard]] asio::awaitable<detail::body_result_t<Body>> with_lock(std::string key, Body body) const
    {
        return detail::with_lock<Body>(core(), std::move(key), {}, std::move(body));
    }

    /// Whether anybody holds the key now; waiters do not count.
    [[nodiscard]] asio::awaitable<bool> is_locked(std::string key) const;
    /// Locks of all processes that match. It collects them: for very many, see list_page().
    [[nodiscard]] asio::awaitable<std::vector<lock_status>> list(
        filter which = {}, list_order order = list_order::any) const;
    /// The same in pages, for any number of locks: the first with an empty cursor, each other with the `next` of the
    /// one before it. A page may be empty; its size is the backend's. What is granted or ends meanwhile may be missing,
    /// and a key that moves may come twice.
    /// \throws validation_error `invalid_options`: the cursor is not one of this backend's.
    [[nodiscard]] asio::awaitable<lock_page> list_page(filter which = {}, std::string cursor = {}) const;
    /// Sweeps expired locks out of the backend, at most `limit` (0: all), and returns them; never a live one or one
    /// without ttl. It goes in steps, each with an operation timeout of its own. If one fails, what was removed until
    /// then is returned; it throws if that is nothing. A cancelled purge does not tell what it has removed.
    [[nodiscard]] asio::awaitable<std::vector<lock_status>> purge(std::size_t limit = 0) const;
    /// The administrator's release: queries the holders of the key, removes them and returns what they were. A lock
    /// that is granted or adopted after the query is left alone. The result is empty if none of the holders found was
    /// left. Handles of this locker report `lost` (broken) at once, other handles at their next renewal. A handle of
    /// this locker that was granted meanwhile, or whose grant has not reached its caller yet, is lost when the caller
    /// gets it, or as soon as the backend has been asked about it. The same if the break fails, times out or is
    /// cancelled after it was sent: it may have been carried out, so the backend is asked about the handles of this
    /// locker.
    [[nodiscard]] asio::awaitable<std::vector<lock_status>> break_lock(std::string key) const;

    /// The locks that this locker holds now, oldest first.
    [[nodiscard]] std::vector<held_lock> held_locks() const;
    [[nodiscard]] locker_stats stats() const;
    /// The options that it was made with; owner and host as they are stored with its locks.
    [[nodiscard]] locker_options defaults() const;

    /// Ends the locker's work: no new acquire, waiters end with `errc::shutting_down`, bodies are cancelled, handles
    /// hear `lost` (shutting_down), all that is held is released. Ends when everything is settled, and the connections
    /// of an adapter that no other locker uses are closed, or after `deadline`. A body that still runs then is not
    /// released but left to its ttl, and reported. Idempotent; the report tells what an earlier one left behind, too.
    [[nodiscard]] asio::awaitable<shutdown_report> shutdown(
        std::chrono::milliseconds deadline = std::chrono::seconds(5)) const;

    /// `void(error_code, lock)`
    template <asio::completion_token_for<void(error_code, lock)> CompletionToken = default_token>
    auto async_acquire(
        std::string key, acquire_options options, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_operation<lock>(
            get_executor(),
            [core = core(), key = std::move(key), options = std::move(options)](const asio::any_io_executor& executor,
                detail::verb_handler<lock> handler, const asio::any_io_executor& caller) mutable {
                start_acquire(core, std::move(key), std::move(options), executor, std::move(handler), caller);
            },
            std::forward<CompletionToken>(completion_token));
    }
    template <asio::completion_token_for<void(error_code, lock)> CompletionToken = default_token>
    auto async_acquire(std::string key, CompletionToken&& completion_token = CompletionToken()) const
    {
        return async_acquire(std::move(key), acquire_options{}, std::forward<CompletionToken>(completion_token));
    }

    /// `void(error_code, std::optional<lock>)`
    template <asio::completion_token_for<void(error_code, std::optional<lock>)> CompletionToken = default_token>
    auto async_try_acquire(
        std::string key, acquire_options options, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_operation<std::optional<lock>>(
            get_executor(),
            [core = core(), key = std::move(key), options = std::move(options)](const asio::any_io_executor& executor,
                detail::verb_handler<std::optional<lock>> handler, const asio::any_io_executor& caller) mutable {
                start_try_acquire(core, std::move(key), std::move(options), executor, std::move(handler), caller);
            },
            std::forward<CompletionToken>(completion_token));
    }
    template <asio::completion_token_for<void(error_code, std::optional<lock>)> CompletionToken = default_token>
    auto async_try_acquire(std::string key, CompletionToken&& completion_token = CompletionToken()) const
    {
        return async_try_acquire(std::move(key), acquire_options{}, std::forward<CompletionToken>(completion_token));
    }

    /// `void(error_code, lock_group)`
    template <asio::completion_token_for<void(error_code, lock_group)> CompletionToken = default_token>
    auto async_acquire_all(
        group_members keys, acquire_options options, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_verb<lock_group>(
            get_executor(),
            [core = core(), keys = std::move(keys), options = std::move(options)]() mutable {
                return acquire_all_verb(std::move(core), std::move(keys), std::move(options));
            },
            std::forward<CompletionToken>(completion_token));
    }
    template <asio::completion_token_for<void(error_code, lock_group)> CompletionToken = default_token>
    auto async_acquire_all(group_members keys, CompletionToken&& completion_token = CompletionToken()) const
    {
        return async_acquire_all(std::move(keys), acquire_options{}, std::forward<CompletionToken>(completion_token));
    }

    /// `void(error_code, lock_group)`
    template <asio::completion_token_for<void(error_code, lock_group)> CompletionToken = default_token>
    auto async_acquire_global(acquire_options options, CompletionToken&& completion_token = CompletionToken()) const
    {
        return async_acquire_all({global_key}, std::move(options), std::forward<CompletionToken>(completion_token));
    }
    template <asio::completion_token_for<void(error_code, lock_group)> CompletionToken = default_token>
    auto async_acquire_global(CompletionToken&& completion_token = CompletionToken()) const
    {
        return async_acquire_global(acquire_options{}, std::forward<CompletionToken>(completion_token));
    }

    /// `void(std::exception_ptr)`, or `void(std::exception_ptr, T)` for a body that returns a T, which must then be
    /// default-constructible. A body's own exception comes out unchanged.
    template <class Body, class CompletionToken = default_token>
        requires detail::lock_body<Body> && asio::completion_token_for<CompletionToken, detail::body_signature_t<Body>>
    auto async_with_lock(std::string key, acquire_options options, Body body,
        CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_with_lock<Body>(core(), get_executor(), std::move(key), std::move(options),
            std::move(body), std::forward<CompletionToken>(completion_token));
    }
    template <class Body, class CompletionToken = default_token>
        requires detail::lock_body<Body> && asio::completion_token_for<CompletionToken, detail::body_signature_t<Body>>
    auto async_with_lock(std::string key, Body body, CompletionToken&& completion_token = CompletionToken()) const
    {
        return async_with_lock(
            std::move(key), acquire_options{}, std::move(body), std::forward<CompletionToken>(completion_token));
    }

    /// `void(error_code, bool)`
    template <asio::completion_token_for<void(error_code, bool)> CompletionToken = default_token>
    auto async_is_locked(std::string key, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_verb<bool>(
            get_executor(), [self = core(), key = std::move(key)]() mutable { return is_locked_verb(self, key); },
            std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, lock)`
    template <asio::completion_token_for<void(error_code, lock)> CompletionToken = default_token>
    auto async_adopt(
        std::string ticket, acquire_options options, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_verb<lock>(
            get_executor(),
            [core = core(), ticket = std::move(ticket), options = std::move(options)]() mutable {
                return adopt_verb(std::move(core), std::move(ticket), std::move(options));
            },
            std::forward<CompletionToken>(completion_token));
    }
    template <asio::completion_token_for<void(error_code, lock)> CompletionToken = default_token>
    auto async_adopt(std::string ticket, CompletionToken&& completion_token = CompletionToken()) const
    {
        return async_adopt(std::move(ticket), acquire_options{}, std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, std::vector<lock_status>)`
    template <asio::completion_token_for<void(error_code, std::vector<lock_status>)> CompletionToken = default_token>
    auto async_list(filter which, list_order order, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_verb<std::vector<lock_status>>(
            get_executor(), [self = core(), which = std::move(which), order] { return list_verb(self, which, order); },
            std::forward<CompletionToken>(completion_token));
    }
    template <asio::completion_token_for<void(error_code, std::vector<lock_status>)> CompletionToken = default_token>
    auto async_list(filter which, CompletionToken&& completion_token = CompletionToken()) const
    {
        return async_list(std::move(which), list_order::any, std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, lock_page)`
    template <asio::completion_token_for<void(error_code, lock_page)> CompletionToken = default_token>
    auto async_list_page(filter which, std::string cursor, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_verb<lock_page>(
            get_executor(),
            [self = core(), which = std::move(which), cursor = std::move(cursor)] {
                return list_page_verb(self, which, cursor);
            },
            std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, std::vector<lock_status>)`
    template <asio::completion_token_for<void(error_code, std::vector<lock_status>)> CompletionToken = default_token>
    auto async_purge(std::size_t limit, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_verb<std::vector<lock_status>>(
            get_executor(), [self = core(), limit] { return purge_verb(self, limit); },
            std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, std::vector<lock_status>)`
    template <asio::completion_token_for<void(error_code, std::vector<lock_status>)> CompletionToken = default_token>
    auto async_break_lock(std::string key, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_verb<std::vector<lock_status>>(
            get_executor(), [self = core(), key = std::move(key)] { return break_verb(self, key); },
            std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, shutdown_report)`
    template <asio::completion_token_for<void(error_code, shutdown_report)> CompletionToken = default_token>
    auto async_shutdown(
        std::chrono::milliseconds deadline, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_verb<shutdown_report>(
            get_executor(), [self = core(), deadline] { return shutdown_verb(self, deadline); },
            std::forward<CompletionToken>(completion_token));
    }

private:
    using core_ptr = std::shared_ptr<detail::core>;
    struct handle;

    [[nodiscard]] const core_ptr& core() const noexcept;
    static void start_acquire(const core_ptr& core, std::string&& key, acquire_options&& options,
        const asio::any_io_executor& executor, detail::verb_handler<lock> handler, const asio::any_io_executor& caller);
    static void start_try_acquire(const core_ptr& core, std::string&& key, acquire_options&& options,
        const asio::any_io_executor& executor, detail::verb_handler<std::optional<lock>> handler,
        const asio::any_io_executor& caller);
    static asio::awaitable<lock_group> acquire_all_verb(core_ptr core, group_members keys, acquire_options options);
    static asio::awaitable<bool> is_locked_verb(core_ptr core, std::string key);
    static asio::awaitable<lock> adopt_verb(core_ptr core, std::string ticket, acquire_options options);
    static asio::awaitable<std::vector<lock_status>> list_verb(core_ptr core, filter which, list_order order);
    static asio::awaitable<lock_page> list_page_verb(core_ptr core, filter which, std::string cursor);
    static asio::awaitable<std::vector<lock_status>> purge_verb(core_ptr core, std::size_t limit);
    static asio::awaitable<std::vector<lock_status>> break_verb(core_ptr core, std::string key);
    static asio::awaitable<shutdown_report> shutdown_verb(core_ptr core, std::chrono::milliseconds deadline);

    /// Shared by the copies; its end is the locker's end.
    std::shared_ptr<handle> handle_;
};

} // namespace colock
