// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/async_functions.hpp>
#include <colock/detail/body.hpp>
#include <colock/detail/export.hpp>
#include <colock/detail/locker_operations.hpp>
#include <colock/keys.hpp>
#include <colock/lock.hpp>
#include <colock/lock_group.hpp>
#include <colock/options.hpp>
#include <colock/spi/adapter.hpp>
#include <colock/stats.hpp>

#include <boost/asio/awaitable.hpp>

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace colock::inline v0 {

class election;

/// Makes locks on one backend. A cheap, copyable handle to shared state.
///
/// When the last copy is destroyed, waiting calls end with `errc::shutting_down`. Locks that are held remain valid.
///
/// There are two families of functions. A plain function returns `asio::awaitable<T>` and throws. The corresponding
/// function with the prefix `async_` takes a completion token and completes with `void(error_code, T)` on the handler's
/// associated executor (default: `get_executor()`). An exception of the handler leaves the `run()` of that executor's
/// context. Nothing else is lost: other callers that were resumed at the same time continue with the next `run()`.
///
/// Warning: an `async_` function with `asio::use_awaitable` or `asio::use_future` throws a
/// `boost::system::system_error`, which `catch (const colock::error&)` does not catch. Call the plain function, await
/// the `async_` function without a token, or wrap the token: `with_diagnostics(asio::use_future)`.
///
/// Execution contexts: the caller of a function, or the handler of an `async_` function, may belong to another
/// execution context than the adapter. As with a timer or a socket, that context must outlive its pending calls. If the
/// adapter's context is destroyed first, a plain function that waits to acquire throws `errc::shutting_down` on its
/// caller's executor, `lock::lost` returns `lost_reason::shutting_down`, and the body of a `with_lock` is cancelled.
/// The handler of a waiting `async_` function is destroyed and not invoked, and so is the body of an `async_with_lock`.
///
/// A plain function runs on its caller's executor. An `async_` function, and the body of `async_with_lock`, run on a
/// strand of the adapter's executor. The handler runs on its associated executor.
///
/// Immediate completion: applies to `async_acquire`, `async_try_acquire`, the `async_` functions of `lock` except
/// `async_detach`, and `async_acquire` and `async_lost` of `lock_group`. If the result is available during the call,
/// the completion uses the handler's associated immediate executor. By default, this executor posts to the adapter's
/// context. Every other completion is dispatched to the handler's associated executor. All results pass through the
/// adapter's context, which must be running.
///
/// Cancellation of an acquire: all three types have the same effect. The call completes promptly with
/// `operation_aborted` and does not wait for the backend. If the lock was not granted yet, nothing is held afterwards;
/// colock cleans up in the background. If the lock is granted at the same moment, either the caller receives it or it
/// is released.
///
/// A plain function responds to the cancellation types that its coroutine lets through, which under `co_spawn` is
/// terminal. An `async_` function responds to all types. Two rules of Asio apply. A coroutine that is cancelled must
/// run on a strand or in a context with one thread. The signal of an `async_` function must be emitted on the
/// executor of its handler.
///
/// Errors of all functions that acquire a lock:
/// - validation_error: `invalid_key` (empty, longer than 512 bytes, or contains a NUL), `invalid_ttl`, `invalid_retry`,
///   `invalid_options` (`max_holders` with exclusive mode, owner data that is too long), `unsupported`. Nothing was
///   sent.
/// - retry_error `retry_exhausted`: the retry policy ended. The last attempt was answered with "busy", or another
///   caller of this locker was ahead in the queue.
/// - create_error: the error of the backend, or `shutting_down`. `unavailable` and `outcome_unknown` count as failed
///   attempts. They are thrown, with their cause, only if the policy ends on such an attempt or on an attempt without
///   an answer. All other errors (`access_denied`, `misconfigured_backend`) are thrown at once, except for one
///   minute after a server that had accepted a connection refuses the next one. A caller that waits behind other
///   callers of this locker receives the error of the first of them.
///
/// Thread safety: distinct objects: safe. Shared objects: all functions are safe, except assigning and destroying.
class COLOCK_EXPORT locker
{
public:
    /// \throws validation_error if the adapter is null or the options contradict each other or the backend.
    explicit locker(std::shared_ptr<adapter> backend, locker_options options = {});
    /// Returns the executor of the adapter.
    [[nodiscard]] asio::any_io_executor get_executor() const;

    /// Waits for the lock. The callers of one locker are served in the order of their calls. With `capabilities::fifo`,
    /// a caller may be served after later ones if a request of it failed, or if its grant came too late to be used.
    ///
    /// Not reentrant: a caller that already holds the key waits for its own release, or until its own lock has expired.
    /// The same is true for an exclusive acquire by the holder of a shared lock.
    [[nodiscard]] asio::awaitable<lock> acquire(key_name key, acquire_options options = {}) const;
    /// Makes one attempt and does not wait for the lock. Returns an empty optional if the lock is busy, or if other
    /// callers of this locker wait for the key or are requesting it exclusively. If these callers wait because of an
    /// error, the function throws that error instead. The retry policy is ignored.
    [[nodiscard]] asio::awaitable<std::optional<lock>> try_acquire(key_name key, acquire_options options = {}) const;
    /// Waits for the lock like acquire, but for at most `within`. Zero or less: one attempt, as without `within`.
    ///
    /// Returns an empty optional if the lock is busy at the end: the last attempt was answered with "busy", or other
    /// callers of this locker are ahead. If the last attempt failed or was not answered, the function throws
    /// create_error, as acquire does. The delays are those of the retry policy, whose limits apply, too.
    template <class Rep, class Period>
    [[nodiscard]] asio::awaitable<std::optional<lock>> try_acquire(
        key_name key, std::chrono::duration<Rep, Period> within, acquire_options options = {}) const
    {
        return detail::operations::try_acquire(
            core(), std::move(key.name), saturating_cast(within), std::move(options));
    }
    /// Acquires all locks or none. The keys are a braced list, or a range of strings. A key has its own mode or the
    /// mode of the options. `max_holders` applies to the shared keys.
    ///
    /// Order: the function first requests all keys in one step, if the backend supports this
    /// (`capabilities::create_all`; on a Redis Cluster, for keys of one slot), the keys are exclusive and at most 64,
    /// and no caller of this locker waits for one of them. Otherwise it acquires the keys in canonical order (sorted,
    /// duplicates removed), and holds the granted locks while it waits for the next key. All callers of acquire_all use
    /// this order, so they cannot deadlock with each other. A waiting group keeps its place in the queue of the key. It
    /// therefore cannot starve where waiters are ordered: within a locker, and among all lockers with
    /// `capabilities::fifo`.
    ///
    /// Deadlocks: a caller that nests locks itself (it holds "b" and acquires "a") can deadlock with acquire_all, and
    /// so can lock_group::acquire. Limit the wait of both by `within`, which ends the deadlock on both sides.
    ///
    /// Leases: until the group is complete, its leases are renewed, whatever `renewal` says. When the last lock is
    /// granted, each lease with less than two thirds of its ttl left is extended. A manual lease is not renewed after
    /// that. `max_hold` counts from the completion of the group. If a lease is lost before the group is complete, all
    /// locks are released. This counts as a failed attempt (`unavailable`), and the group starts again after the delay
    /// of the policy. If the process crashes while it waits, the locks without a ttl that it held stay locked.
    ///
    /// Retry: one retry policy applies to all keys together. A grant neither counts as an attempt nor resets the
    /// policy, and `never()` ends with the first refusal. A cancellation, a failure or a shutdown releases all locks in
    /// the background.
    ///
    /// The observer, `stats()` and `held_locks()` include the locks only when the group is complete. The group counts
    /// as one wait.
    /// \throws validation_error `invalid_options` for an empty list (see acquire_global()), and for a key that is
    ///     listed twice with different modes.
    [[nodiscard]] asio::awaitable<lock_group> acquire_all(group_members keys, acquire_options options = {}) const;
    /// Acquires all locks or none, like acquire_all, but waits for at most `within`. Zero or less: one attempt.
    ///
    /// Returns an empty optional if one of the locks is busy at the end, as try_acquire does. Errors are those of
    /// acquire_all.
    template <class Rep = lease_clock::rep, class Period = lease_clock::period>
    [[nodiscard]] asio::awaitable<std::optional<lock_group>> try_acquire_all(group_members keys,
        std::chrono::duration<Rep, Period> within = std::chrono::duration<Rep, Period>::zero(),
        acquire_options options = {}) const
    {
        return detail::operations::try_acquire_all(
            core(), std::move(keys), saturating_cast(within), std::move(options));
    }
    /// Acquires the global lock, which has the fixed key `global_key`. It does not exclude the locks of other keys.
    [[nodiscard]] asio::awaitable<lock_group> acquire_global(acquire_options options = {}) const;
    /// The key of the lock of acquire_global().
    static constexpr const char* global_key = "colock.global";
    /// The key of the lock that a locker holds while it purges in the background, see background_purge.
    static constexpr const char* purge_key = "colock.purge";
    /// Makes an empty group, to which `lock_group::acquire` adds locks. With an id (1 to 256 bytes, no NUL), the group
    /// acts on all locks of that id, including those of other processes. Without an id, the group gets a new id, and
    /// acts only on its own locks.
    /// \throws validation_error `invalid_options` for an invalid id; `unsupported` with an id on a backend that cannot
    ///     find the locks of a group (a quorum).
    [[nodiscard]] lock_group group(std::string id = {}) const;
    /// Takes over a lock that was given up by `lock::detach`. The lock gets a new token and a greater fence. Its ttl is
    /// that of the options or, if the options have none, its previous ttl. The ttl also runs between the two calls.
    ///
    /// Key and mode come from the ticket. `mode`, `max_holders` and `retry` of the options are ignored: the request is
    /// repeated until the operation timeout.
    /// \throws validation_error `invalid_options`: the string is not a ticket, or is a ticket of another kind of
    ///     backend.
    /// \throws create_error `not_held`: no lock is held under this ticket any more, because the ticket was used or the
    ///     ttl has ended. Otherwise the error of the backend, as for acquire.
    [[nodiscard]] asio::awaitable<lock> adopt(std::string ticket, acquire_options options = {}) const;

    /// Acquires the lock, runs `body`, releases the lock, and returns the result of the body.
    ///
    /// Body: takes `lock&` or nothing, and returns an `asio::awaitable` or a plain value (movable, not a reference). A
    /// coroutine runs on a strand of the caller's executor. If that executor is itself an `asio::strand` of an
    /// `io_context`, `thread_pool` or `any_io_executor`, no other strand is made. A body that returns a plain value is
    /// called on the caller's executor and cannot be cancelled. The body of an `async_with_lock` runs on a strand of
    /// the adapter's executor. If that function is called on a thread that runs the adapter's context, the body may
    /// begin inside the call, as with `co_spawn`.
    ///
    /// Cancellation: the lease is renewed while the body runs. The body is cancelled (all types) at each of these
    /// events: `stop_margin` before the lease can end, when the loss of the lock becomes known, at a shutdown, and at
    /// each cancellation of the caller. A body that continues after a cancellation (because it resets its cancellation
    /// state, or does not throw) is cancelled again by the next event. A value that is returned before the stop
    /// margin, a loss and a shutdown is the result, even after a cancellation of the caller.
    ///
    /// Completion: the function returns only after the body has ended. Then the lock is released, even if the body has
    /// moved the handle away. The call ends when the release is answered, or after the operation timeout. If the caller
    /// is cancelled before that, the call ends promptly after the body: the release continues in the background, and
    /// the value or exception of the body is the result.
    /// Not reentrant: a body that acquires its own key waits for itself. Pass the `lock&` instead.
    /// \throws lost_error `lost`: the lease was lost before the body ended. An exception of the body is nested.
    ///
    /// If the lease was not lost, an exception of the body is passed on unchanged.
    ///
    /// Several keys, in a braced list or a range: all locks are acquired or none, as by acquire_all. The body takes
    /// `lock_group&` or nothing, and is cancelled as soon as any of the locks is lost or can soon end. lost_error then
    /// names the lock by `key()`. Locks that the body adds are released in the background, and do not cancel the body.
    template <class Keys = std::initializer_list<group_member>, class Body>
    [[nodiscard]] asio::awaitable<detail::body_result_t<Body, detail::held_by<Keys>>> with_lock(
        Keys&& keys, acquire_options options, Body body) const
    {
        return detail::with_lock(core(), std::forward<Keys>(keys), std::move(options), std::move(body));
    }
    template <class Keys = std::initializer_list<group_member>, class Body>
    [[nodiscard]] asio::awaitable<detail::body_result_t<Body, detail::held_by<Keys>>> with_lock(
        Keys&& keys, Body body, std::source_location location = std::source_location::current()) const
    {
        return with_lock(std::forward<Keys>(keys), acquire_options{.location = location}, std::move(body));
    }

    /// Runs `body` under a lock, or under several, like with_lock, but waits for at most `within`. Zero or less: one
    /// attempt.
    ///
    /// Returns an optional with the result of the body, or for a body without a result a bool: whether the body was
    /// run. The optional is empty, or the bool is false, if the lock is busy at the end, as for try_acquire. Errors are
    /// those of with_lock.
    template <class Keys = std::initializer_list<group_member>, class Rep, class Period, class Body>
    [[nodiscard]] asio::awaitable<detail::try_result_t<Body, detail::held_by<Keys>>> try_with_lock(
        Keys&& keys, std::chrono::duration<Rep, Period> within, acquire_options options, Body body) const
    {
        return detail::try_with_lock(
            core(), std::forward<Keys>(keys), saturating_cast(within), std::move(options), std::move(body));
    }
    template <class Keys = std::initializer_list<group_member>, class Rep, class Period, class Body>
    [[nodiscard]] asio::awaitable<detail::try_result_t<Body, detail::held_by<Keys>>> try_with_lock(Keys&& keys,
        std::chrono::duration<Rep, Period> within, Body body,
        std::source_location location = std::source_location::current()) const
    {
        return try_with_lock(std::forward<Keys>(keys), within, acquire_options{.location = location}, std::move(body));
    }

    /// Returns whether the key is held. Waiters do not count.
    [[nodiscard]] asio::awaitable<bool> is_locked(key_name key) const;
    /// Returns the locks of all processes that match the filter. The result is collected in memory; for many locks, use
    /// list_page().
    [[nodiscard]] asio::awaitable<std::vector<lock_status>> list(
        filter which = {}, list_order order = list_order::any) const;
    /// Returns the matching locks in pages, for any number of locks. Pass an empty cursor for the first page, and
    /// `next` of the previous page for each other page. The page size depends on the backend, and a page may be empty.
    /// Locks that are granted or end between two pages may be missing, and a key whose position among the keys of
    /// the backend changes may be listed twice.
    /// \throws validation_error `invalid_options`: the cursor is not a cursor of this backend.
    [[nodiscard]] asio::awaitable<lock_page> list_page(filter which = {}, std::string cursor = {}) const;
    /// Removes expired locks from the backend, at most `limit` (0: all), and returns them. Never removes a live lock or
    /// a lock without ttl.
    ///
    /// The purge runs in steps, and each step has its own operation timeout. If a step fails, the function returns the
    /// locks that were removed before, or throws if there are none. A cancelled purge does not report what it has
    /// removed.
    [[nodiscard]] asio::awaitable<std::vector<lock_status>> purge(std::size_t limit = 0) const;
    /// Forced release for administrators: queries the holders of the key, removes them, and returns their previous
    /// status. A lock that is granted or adopted after the query is not removed. The result is empty if none of the
    /// holders was left.
    ///
    /// Handles of this locker report `lost` (broken) at once. Other handles report it at their next renewal. A lock of
    /// this locker may have been granted during the break, or may not have reached its caller yet. Such a lock is lost
    /// when the caller receives it, or as soon as the backend has been asked about it.
    ///
    /// If the break fails, times out or is cancelled after it was sent, it may have been carried out. The backend is
    /// then asked about the handles of this locker.
    [[nodiscard]] asio::awaitable<std::vector<lock_status>> break_lock(key_name key) const;

    /// Returns the locks that this locker holds, the oldest first.
    [[nodiscard]] std::vector<held_lock> held_locks() const;
    /// Returns the acquires of this locker that wait, sorted by their place in the queue of each key. An acquire of
    /// several locks is listed with the key that it waits for. It is not listed while it pauses before it starts again.
    [[nodiscard]] std::vector<waiting_acquire> waiting_acquires() const;
    /// Returns the statistics of this locker.
    [[nodiscard]] locker_stats stats() const;
    /// Returns the options of this locker, with the owner and host that are stored with its locks.
    [[nodiscard]] locker_options defaults() const;

    /// Shuts the locker down. New acquires are rejected, waiting acquires end with `errc::shutting_down`, bodies of
    /// `with_lock` are cancelled, handles report `lost` (shutting_down), and all held locks are released.
    ///
    /// Completes when all background work is done and the adapter's connections are closed, or after `deadline`. The
    /// connections are closed only if no other locker uses the adapter. The lock of a body that still runs at the
    /// deadline is not released but left to its ttl, and is listed in the report.
    ///
    /// Idempotent. The report also contains what an earlier call could not complete. A negative deadline counts as 0.
    [[nodiscard]] asio::awaitable<shutdown_report> shutdown(
        std::chrono::milliseconds deadline = default_shutdown_deadline) const;
    /// The deadline of a shutdown for which none is given: 5 s.
    static constexpr std::chrono::milliseconds default_shutdown_deadline{5'000};

    /// `void(error_code, lock)`
    template <detail::token_or_handler<void(error_code, lock)> CompletionToken = default_token>
    auto async_acquire(
        key_name key, acquire_options options, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_operation<lock>(get_executor(),
            std::bind_front(&detail::operations::start_acquire, core(), std::move(key.name), std::move(options)),
            std::forward<CompletionToken>(completion_token));
    }
    template <detail::token_or_handler<void(error_code, lock)> CompletionToken = default_token>
    auto async_acquire(key_name key, CompletionToken&& completion_token = CompletionToken(),
        std::source_location location = std::source_location::current()) const
    {
        return async_acquire(
            std::move(key), acquire_options{.location = location}, std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, std::optional<lock>)`
    template <detail::token_or_handler<void(error_code, std::optional<lock>)> CompletionToken = default_token>
    auto async_try_acquire(
        key_name key, acquire_options options, CompletionToken&& completion_token = CompletionToken()) const
    {
        return async_try_acquire(std::move(key), lease_clock::duration::zero(), std::move(options),
            std::forward<CompletionToken>(completion_token));
    }
    template <class Rep, class Period,
        detail::token_or_handler<void(error_code, std::optional<lock>)> CompletionToken = default_token>
    auto async_try_acquire(key_name key, std::chrono::duration<Rep, Period> within, acquire_options options,
        CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_operation<std::optional<lock>>(get_executor(),
            std::bind_front(&detail::operations::start_try_acquire, core(), std::move(key.name),
                saturating_cast(within), std::move(options)),
            std::forward<CompletionToken>(completion_token));
    }
    template <class Rep, class Period,
        detail::token_or_handler<void(error_code, std::optional<lock>)> CompletionToken = default_token>
    auto async_try_acquire(key_name key, std::chrono::duration<Rep, Period> within,
        CompletionToken&& completion_token = CompletionToken(),
        std::source_location location = std::source_location::current()) const
    {
        return async_try_acquire(std::move(key), within, acquire_options{.location = location},
            std::forward<CompletionToken>(completion_token));
    }
    template <detail::token_or_handler<void(error_code, std::optional<lock>)> CompletionToken = default_token>
    auto async_try_acquire(key_name key, CompletionToken&& completion_token = CompletionToken(),
        std::source_location location = std::source_location::current()) const
    {
        return async_try_acquire(
            std::move(key), acquire_options{.location = location}, std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, lock_group)`
    template <detail::token_or_handler<void(error_code, lock_group)> CompletionToken = default_token>
    auto async_acquire_all(
        group_members keys, acquire_options options, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_coroutine<lock_group>(get_executor(),
            std::bind_front(&detail::operations::acquire_all, core(), std::move(keys), std::move(options)),
            std::forward<CompletionToken>(completion_token));
    }
    template <detail::token_or_handler<void(error_code, lock_group)> CompletionToken = default_token>
    auto async_acquire_all(group_members keys, CompletionToken&& completion_token = CompletionToken(),
        std::source_location location = std::source_location::current()) const
    {
        return async_acquire_all(
            std::move(keys), acquire_options{.location = location}, std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, std::optional<lock_group>)`
    template <class Rep, class Period,
        detail::token_or_handler<void(error_code, std::optional<lock_group>)> CompletionToken = default_token>
    auto async_try_acquire_all(group_members keys, std::chrono::duration<Rep, Period> within, acquire_options options,
        CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_coroutine<std::optional<lock_group>>(get_executor(),
            std::bind_front(&detail::operations::try_acquire_all, core(), std::move(keys), saturating_cast(within),
                std::move(options)),
            std::forward<CompletionToken>(completion_token));
    }
    template <class Rep, class Period,
        detail::token_or_handler<void(error_code, std::optional<lock_group>)> CompletionToken = default_token>
    auto async_try_acquire_all(group_members keys, std::chrono::duration<Rep, Period> within,
        CompletionToken&& completion_token = CompletionToken(),
        std::source_location location = std::source_location::current()) const
    {
        return async_try_acquire_all(std::move(keys), within, acquire_options{.location = location},
            std::forward<CompletionToken>(completion_token));
    }
    template <detail::token_or_handler<void(error_code, std::optional<lock_group>)> CompletionToken = default_token>
    auto async_try_acquire_all(group_members keys, CompletionToken&& completion_token = CompletionToken(),
        std::source_location location = std::source_location::current()) const
    {
        return async_try_acquire_all(std::move(keys), lease_clock::duration::zero(),
            acquire_options{.location = location}, std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, lock_group)`
    template <detail::token_or_handler<void(error_code, lock_group)> CompletionToken = default_token>
    auto async_acquire_global(acquire_options options, CompletionToken&& completion_token = CompletionToken()) const
    {
        return async_acquire_all({global_key}, std::move(options), std::forward<CompletionToken>(completion_token));
    }
    template <detail::token_or_handler<void(error_code, lock_group)> CompletionToken = default_token>
    auto async_acquire_global(CompletionToken&& completion_token = CompletionToken(),
        std::source_location location = std::source_location::current()) const
    {
        return async_acquire_global(
            acquire_options{.location = location}, std::forward<CompletionToken>(completion_token));
    }
    /// `void(std::exception_ptr)`, or `void(std::exception_ptr, T)` for a body that returns a T. T must be
    /// default-constructible. An exception of the body is passed on unchanged.
    template <class Keys = std::initializer_list<group_member>, class Body, class CompletionToken = default_token>
    auto async_with_lock(
        Keys&& keys, acquire_options options, Body body, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_with_lock(core(), get_executor(), std::forward<Keys>(keys), std::move(options),
            std::move(body), std::forward<CompletionToken>(completion_token));
    }
    template <class Keys = std::initializer_list<group_member>, detail::no_options Body,
        class CompletionToken = default_token>
    auto async_with_lock(Keys&& keys, Body body, CompletionToken&& completion_token = CompletionToken(),
        std::source_location location = std::source_location::current()) const
    {
        return async_with_lock(std::forward<Keys>(keys), acquire_options{.location = location}, std::move(body),
            std::forward<CompletionToken>(completion_token));
    }
    /// `void(std::exception_ptr, std::optional<T>)` for a body that returns a T, or `void(std::exception_ptr, bool)`.
    /// An exception of the body is passed on unchanged.
    template <class Keys = std::initializer_list<group_member>, class Rep, class Period, class Body,
        class CompletionToken = default_token>
    auto async_try_with_lock(Keys&& keys, std::chrono::duration<Rep, Period> within, acquire_options options, Body body,
        CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_try_with_lock(core(), get_executor(), std::forward<Keys>(keys), saturating_cast(within),
            std::move(options), std::move(body), std::forward<CompletionToken>(completion_token));
    }
    template <class Keys = std::initializer_list<group_member>, class Rep, class Period, detail::no_options Body,
        class CompletionToken = default_token>
    auto async_try_with_lock(Keys&& keys, std::chrono::duration<Rep, Period> within, Body body,
        CompletionToken&& completion_token = CompletionToken(),
        std::source_location location = std::source_location::current()) const
    {
        return async_try_with_lock(std::forward<Keys>(keys), within, acquire_options{.location = location},
            std::move(body), std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, bool)`
    template <detail::token_or_handler<void(error_code, bool)> CompletionToken = default_token>
    auto async_is_locked(key_name key, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_coroutine<bool>(get_executor(),
            std::bind_front(&detail::operations::is_locked, core(), std::move(key.name)),
            std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, lock)`
    template <detail::token_or_handler<void(error_code, lock)> CompletionToken = default_token>
    auto async_adopt(
        std::string ticket, acquire_options options, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_coroutine<lock>(get_executor(),
            std::bind_front(&detail::operations::adopt, core(), std::move(ticket), std::move(options)),
            std::forward<CompletionToken>(completion_token));
    }
    template <detail::token_or_handler<void(error_code, lock)> CompletionToken = default_token>
    auto async_adopt(std::string ticket, CompletionToken&& completion_token = CompletionToken(),
        std::source_location location = std::source_location::current()) const
    {
        return async_adopt(
            std::move(ticket), acquire_options{.location = location}, std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, std::vector<lock_status>)`
    template <detail::token_or_handler<void(error_code, std::vector<lock_status>)> CompletionToken = default_token>
    auto async_list(filter which, list_order order, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_coroutine<std::vector<lock_status>>(get_executor(),
            std::bind_front(&detail::operations::list, core(), std::move(which), order),
            std::forward<CompletionToken>(completion_token));
    }
    template <detail::token_or_handler<void(error_code, std::vector<lock_status>)> CompletionToken = default_token>
    auto async_list(filter which, CompletionToken&& completion_token = CompletionToken()) const
    {
        return async_list(std::move(which), list_order::any, std::forward<CompletionToken>(completion_token));
    }
    template <detail::token_or_handler<void(error_code, std::vector<lock_status>)> CompletionToken = default_token>
    auto async_list(CompletionToken&& completion_token = CompletionToken()) const
    {
        return async_list(filter{}, std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, lock_page)`
    template <detail::token_or_handler<void(error_code, lock_page)> CompletionToken = default_token>
    auto async_list_page(filter which, std::string cursor, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_coroutine<lock_page>(get_executor(),
            std::bind_front(&detail::operations::list_page, core(), std::move(which), std::move(cursor)),
            std::forward<CompletionToken>(completion_token));
    }
    template <detail::token_or_handler<void(error_code, lock_page)> CompletionToken = default_token>
    auto async_list_page(filter which, CompletionToken&& completion_token = CompletionToken()) const
    {
        return async_list_page(std::move(which), std::string(), std::forward<CompletionToken>(completion_token));
    }
    template <detail::token_or_handler<void(error_code, lock_page)> CompletionToken = default_token>
    auto async_list_page(CompletionToken&& completion_token = CompletionToken()) const
    {
        return async_list_page(filter{}, std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, std::vector<lock_status>)`
    template <detail::token_or_handler<void(error_code, std::vector<lock_status>)> CompletionToken = default_token>
    auto async_purge(std::size_t limit, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_coroutine<std::vector<lock_status>>(get_executor(),
            std::bind_front(&detail::operations::purge, core(), limit),
            std::forward<CompletionToken>(completion_token));
    }
    template <detail::token_or_handler<void(error_code, std::vector<lock_status>)> CompletionToken = default_token>
    auto async_purge(CompletionToken&& completion_token = CompletionToken()) const
    {
        return async_purge(0, std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, std::vector<lock_status>)`
    template <detail::token_or_handler<void(error_code, std::vector<lock_status>)> CompletionToken = default_token>
    auto async_break_lock(key_name key, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_coroutine<std::vector<lock_status>>(get_executor(),
            std::bind_front(&detail::operations::break_lock, core(), std::move(key.name)),
            std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, shutdown_report)`
    template <detail::token_or_handler<void(error_code, shutdown_report)> CompletionToken = default_token>
    auto async_shutdown(
        std::chrono::milliseconds deadline, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_coroutine<shutdown_report>(get_executor(),
            std::bind_front(&detail::operations::shutdown, core(), deadline),
            std::forward<CompletionToken>(completion_token));
    }
    template <detail::token_or_handler<void(error_code, shutdown_report)> CompletionToken = default_token>
    auto async_shutdown(CompletionToken&& completion_token = CompletionToken()) const
    {
        return async_shutdown(default_shutdown_deadline, std::forward<CompletionToken>(completion_token));
    }

private:
    friend class election;
    struct handle;

    [[nodiscard]] const std::shared_ptr<detail::core>& core() const noexcept;

    /// Shared by all copies of this locker. Its destruction ends the locker.
    std::shared_ptr<handle> handle_;
};

} // namespace colock::inline v0
