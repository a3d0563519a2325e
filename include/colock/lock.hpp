// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/async_functions.hpp>
#include <colock/detail/export.hpp>
#include <colock/lost_reason.hpp>
#include <colock/options.hpp>
#include <colock/spi/claim.hpp>
#include <colock/status.hpp>
#include <colock/token.hpp>

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace colock::inline v0 {

namespace detail {
class core;
class lock_record;
} // namespace detail

/// A lock that is held. Move-only; the destructor releases it.
///
/// The destructor does not throw and does not block: it starts the release in the background and returns. A failure of
/// that release is also handled in the background. If the connection is lost, the lock remains in the backend until its
/// ttl ends at the latest.
///
/// A moved-from or default-constructed lock is empty. The accessors of an empty lock return default values, and
/// `release()` has no effect. All other operations, including `release(on_failure::raise)`, fail with validation_error
/// `invalid_options`. For an empty lock, the `async_` functions other than `async_release` throw this exception when
/// they are called, because there is no executor to complete on.
///
/// The functions that return an awaitable resume on the caller's executor. They respond to the cancellation types that
/// the caller's coroutine lets through (under plain `co_spawn`: terminal). Every type has the same effect: the call
/// ends with `operation_aborted`, and the request that is in flight continues in the background.
///
/// Thread safety: distinct objects: safe. Shared objects: all functions are safe, except moving, assigning and
/// destroying.
///
/// The class is `[[nodiscard]]`, because a discarded lock is released at once. Clang warns of
/// `co_await locker.acquire("k");`. GCC (versions 12 and 14 were tested) warns of a discarded plain call, but not of a
/// discarded `co_await`.
class COLOCK_EXPORT [[nodiscard]] lock
{
public:
    /// Makes an empty lock.
    lock() noexcept = default;
    /// Moves the lock. `other` is empty afterwards.
    lock(lock&& other) noexcept = default;
    /// Releases the current lock in the background, as the destructor does, and takes over `other`.
    lock& operator=(lock&& other) noexcept;
    /// Starts the release in the background, and returns at once.
    ~lock();

    /// Returns the key.
    [[nodiscard]] const std::string& key() const noexcept;
    /// Returns the secret by which the backend recognizes the holder. Do not log it.
    [[nodiscard]] colock::token token() const;
    /// Returns the fencing token, which grows with every grant of this key. Pass it to the resource, which must reject
    /// lower tokens. 0 if the backend has no fencing tokens.
    [[nodiscard]] std::uint64_t fence() const noexcept;
    /// Returns whether the lock is exclusive or shared.
    [[nodiscard]] lock_mode mode() const noexcept;
    /// Returns the ttl of the grant. 0: the lock is held until it is released.
    [[nodiscard]] std::chrono::milliseconds ttl() const noexcept;
    /// Returns the local deadline of the lease. It is earlier than the expiry in the backend. `time_point::max()` for a
    /// lock without ttl.
    [[nodiscard]] lease_clock::time_point expires_at() const noexcept;
    /// Returns the time until the local deadline of the lease. `std::chrono::nanoseconds::max()` for a lock without
    /// ttl. Zero if `held()` is false: the lock is empty, released or lost, or its local deadline has passed.
    [[nodiscard]] std::chrono::nanoseconds valid_for() const noexcept;
    /// Returns whether the lock is held as far as this process knows: it is not released, not known to be lost, and its
    /// local deadline has not passed. Performs no I/O.
    ///
    /// The process may be paused directly after this call, so no lock service can promise more. Use the fence to
    /// protect the resource.
    [[nodiscard]] bool held() const noexcept;
    /// Returns whether this object is not empty. The lock of a non-empty object may be lost or released.
    [[nodiscard]] explicit operator bool() const noexcept { return record_ != nullptr; }

    /// Asks the backend whether this lock is still held. Returns false without I/O after the lock was released or lost
    /// locally.
    /// \throws error `unavailable`: no answer within the operation timeout.
    [[nodiscard]] asio::awaitable<bool> is_locked() const;

    /// Sets the remaining time to `ttl`, counted from now. The new time may be shorter than the old one. The local
    /// deadline is lowered before the request is sent, and raised when it is answered. Waits for a renewal that is in
    /// flight.
    ///
    /// An earlier request with a shorter ttl may be unanswered, and may still take effect in the backend (see the page
    /// of the backend). In this case the deadline stays within that shorter ttl, and automatic renewal uses the
    /// matching interval.
    /// \throws validation_error `invalid_ttl`: `ttl` is out of range or 0, or the lock has no ttl.
    /// \throws extend_error `not_held`: the lock was released, has expired or was taken. `unavailable`,
    ///     `outcome_unknown`: no answer in time; the lock is held until the earlier of the old and the new deadline.
    [[nodiscard]] asio::awaitable<void> extend(std::chrono::milliseconds ttl);

    /// Releases the lock. `held()` is false as soon as the function is called. Idempotent. Completes when the backend
    /// has answered, or after the operation timeout; without an answer, the release is completed in the background.
    /// \throws release_error only with on_failure::raise. `not_held`: the lock had expired or was taken. `unavailable`,
    ///     `outcome_unknown`: the backend did not answer. A second release does not throw.
    [[nodiscard]] asio::awaitable<void> release(on_failure report = on_failure::quiet);

    /// Ends renewal without a release, and returns a ticket with which `locker::adopt` takes over the lock, in this or
    /// in another process. Waits for a renewal that is in flight.
    ///
    /// When the function returns, `held()` is false and `lost()` completes with `released`. The lock remains in the
    /// backend and its ttl continues to run, so it must be adopted before the ttl ends.
    ///
    /// The ticket is a secret, because it is sufficient to take over the lock. It works once, because the adoption
    /// replaces the token.
    /// \throws validation_error `unsupported`: the backend cannot move locks (ZooKeeper: a lock belongs to its
    ///     session).
    /// \throws error `not_held`: the lock was released, has expired or was taken. `outcome_unknown`: a create or an
    ///     extension of this lock has not been answered, so a ticket might be invalid; the lock does not change.
    [[nodiscard]] asio::awaitable<std::string> detach();

    /// Completes with the reason when the lease has ended; at once if it has ended already. Any number of coroutines
    /// may wait. A local timer detects the end of the lease even while the backend cannot be reached.
    [[nodiscard]] asio::awaitable<lost_reason> lost() const;

    /// `void(error_code, bool)`
    template <detail::token_or_handler<void(error_code, bool)> CompletionToken = default_token>
    auto async_is_locked(CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_operation<bool>(
            executor(),
            [record = record_, core = core_](
                detail::operation_handler<bool> handler) { start_is_locked(record, core, std::move(handler)); },
            std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code)`
    template <detail::token_or_handler<void(error_code)> CompletionToken = default_token>
    auto async_extend(std::chrono::milliseconds ttl, CompletionToken&& completion_token = CompletionToken())
    {
        return detail::async_operation<void>(
            executor(),
            [record = record_, core = core_, ttl](
                detail::operation_handler<void> handler) { start_extend(record, core, ttl, std::move(handler)); },
            std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code)`. For an empty lock it completes on the handler's executor, with the same result as `release`.
    /// The handler may be called before the function returns, because an empty lock has no executor.
    template <detail::token_or_handler<void(error_code)> CompletionToken = default_token>
    auto async_release(on_failure report, CompletionToken&& completion_token = CompletionToken())
    {
        return detail::initiate<void(error_code)>(
            release_initiation{record_, core_, report}, std::forward<CompletionToken>(completion_token));
    }
    template <detail::token_or_handler<void(error_code)> CompletionToken = default_token>
    auto async_release(CompletionToken&& completion_token = CompletionToken())
    {
        return async_release(on_failure::quiet, std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, std::string)`
    template <detail::token_or_handler<void(error_code, std::string)> CompletionToken = default_token>
    auto async_detach(CompletionToken&& completion_token = CompletionToken())
    {
        return detail::async_coroutine<std::string>(
            executor(), [record = record_, core = core_] { return run_detach(record, core); },
            std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, lost_reason)`
    template <detail::token_or_handler<void(error_code, lost_reason)> CompletionToken = default_token>
    auto async_lost(CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_operation<lost_reason>(
            executor(),
            [record = record_, core = core_](
                detail::operation_handler<lost_reason> handler) { start_lost(record, core, std::move(handler)); },
            std::forward<CompletionToken>(completion_token));
    }

private:
    friend class detail::lock_record;
    friend class detail::core;
    using core_ptr = std::shared_ptr<detail::core>;

    struct release_initiation
    {
        using executor_type = detail::initiation_executor;

        claim_ptr record;
        core_ptr core;
        on_failure report;

        /// Returns the system executor for an empty lock.
        [[nodiscard]] executor_type get_executor() const noexcept;
        template <class Handler>
        void operator()(Handler&& handler)
        {
            start(detail::operation_handler<void>(
                detail::code_completion<std::decay_t<Handler>>{std::forward<Handler>(handler)}));
        }

    private:
        void start(detail::operation_handler<void> handler);
    };

    lock(claim_ptr&& record, core_ptr&& core) noexcept : record_(std::move(record)), core_(std::move(core)) {}

    /// \throws validation_error `invalid_options` if the lock is empty
    [[nodiscard]] asio::any_io_executor executor() const;
    static void start_is_locked(const claim_ptr& claim, const core_ptr& core, detail::operation_handler<bool> handler);
    static void start_extend(const claim_ptr& claim, const core_ptr& core, std::chrono::milliseconds ttl,
        detail::operation_handler<void> handler);
    static void start_lost(
        const claim_ptr& claim, const core_ptr& core, detail::operation_handler<lost_reason> handler);
    static asio::awaitable<std::string> run_detach(claim_ptr claim, core_ptr core);

    /// The dynamic type is always detail::lock_record.
    claim_ptr record_;
    core_ptr core_;
};

} // namespace colock::inline v0
