// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/front.hpp>
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

namespace colock {

namespace detail {
class core;
class record;
} // namespace detail

/// A lock that is held: move-only, released when it dies.
///
/// The destructor never throws and never blocks: it starts the release in the background and returns; a failure is
/// settled there, and the ttl bounds what a lost connection can leave behind. A moved-from or default-constructed lock
/// is empty: its accessors return nothing of interest, `release()` does nothing, and its other verbs throw
/// validation_error with `errc::invalid_options` (the `async_` fronts but that of release, which have no executor then,
/// from the call).
///
/// The verbs return awaitables that resume on the caller's executor. They honour the cancellation types that the
/// caller's coroutine lets through (under plain `co_spawn`: terminal), with the same effect for each type: the call
/// ends with `operation_aborted`, the request that is under way goes on in the background.
///
/// Thread safety: distinct objects: safe. Shared objects: all but moving, assigning and destroying is safe.
///
/// To discard one is to release it at once, so the class is `[[nodiscard]]`: Clang warns of `co_await
/// locker.acquire("k");`. GCC (12 and 14 were tried) warns of a discarded plain call, but not of a discarded
/// `co_await`.
class [[nodiscard]] lock
{
public:
    lock() noexcept = default;
    lock(lock&& other) noexcept = default;
    lock& operator=(lock&& other) noexcept;
    ~lock();

    [[nodiscard]] const std::string& key() const noexcept;
    [[nodiscard]] colock::token token() const;
    /// The fencing token: grows with every grant of this key. Hand it to the resource, which refuses lower ones.
    /// 0 where the backend has none.
    [[nodiscard]] std::uint64_t fence() const noexcept;
    [[nodiscard]] lock_mode mode() const noexcept;
    /// 0: until released.
    [[nodiscard]] std::chrono::milliseconds ttl() const noexcept;
    /// The local deadline, already on the safe side of the backend's. `time_point::max()` for a lock without ttl.
    [[nodiscard]] lease_clock::time_point expires_at() const noexcept;
    /// Local and free: not released, not known to be lost, deadline not passed. No lock service can promise more to a
    /// process that may be paused right after it asked: that is what the fence is for.
    [[nodiscard]] bool held() const noexcept;
    /// Not empty. Says nothing about whether it is held.
    [[nodiscard]] explicit operator bool() const noexcept { return record_ != nullptr; }

    /// Asks the backend whether this lock still stands. False without I/O after it was released or lost locally.
    /// \throws error `unavailable`: no answer within the operation timeout.
    [[nodiscard]] asio::awaitable<bool> is_locked() const;

    /// Sets the remaining time to `ttl`, counted from now; may shorten. The local deadline is lowered before the
    /// request is sent and raised when it is answered. Waits for a renewal that is under way. Where an earlier, shorter
    /// one was not answered and may still arrive at the backend (see its page), the deadline stays that near, and an
    /// automatic renewal keeps step with it.
    /// \throws validation_error `invalid_ttl`: out of range, 0, or the lock has no ttl.
    /// \throws extend_error `not_held`: released, expired or taken; `unavailable`, `outcome_unknown`: not answered in
    /// time, the lock is held until the lower of both deadlines.
    [[nodiscard]] asio::awaitable<void> extend(std::chrono::milliseconds ttl);

    /// Gives the lock back; `held()` is false from the call on. Idempotent. Ends when the backend has answered or after
    /// the operation timeout; what was not answered is settled in the background.
    /// \throws release_error only with on_failure::raise: `not_held` for a lock that had expired or was taken,
    /// `unavailable`, `outcome_unknown`. A second release raises nothing.
    [[nodiscard]] asio::awaitable<void> release(on_failure report = on_failure::quiet);

    /// Gives the lock to whoever adopts it: ends renewal without a release, and returns a ticket for `locker::adopt`,
    /// in this or in another process. `held()` is false from the return on, and `lost()` completes with `released`; the
    /// lock stands in the backend, and its ttl runs: whoever does not adopt it in that time finds it gone. Waits for a
    /// renewal that is under way.
    ///
    /// The ticket is a secret: whoever has it, has the lock. It works once, because the adoption replaces the token.
    /// \throws validation_error `unsupported`: locks of this backend cannot be moved (ZooKeeper: they belong to their
    /// session). \throws error `not_held`: it was released, has expired or was taken; `outcome_unknown`: a create or an
    /// extension of it has not been answered, so it cannot be told what a ticket would be worth: the lock stays as it
    /// is.
    [[nodiscard]] asio::awaitable<std::string> detach();

    /// Completes when the lease has ended, with the reason; at once if it has ended already. May be awaited by any
    /// number of coroutines. The loss is found by a local timer, even while the backend cannot be reached.
    [[nodiscard]] asio::awaitable<lost_reason> lost() const;

    /// `void(error_code, bool)`
    template <asio::completion_token_for<void(error_code, bool)> CompletionToken = default_token>
    auto async_is_locked(CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_operation<bool>(
            executor(),
            [record = record_, core = core_](const asio::any_io_executor& executor, detail::verb_handler<bool> handler,
                const asio::any_io_executor& caller) {
                start_is_locked(record, core, executor, std::move(handler), caller);
            },
            std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code)`
    template <asio::completion_token_for<void(error_code)> CompletionToken = default_token>
    auto async_extend(std::chrono::milliseconds ttl, CompletionToken&& completion_token = CompletionToken())
    {
        return detail::async_operation<void>(
            executor(),
            [record = record_, core = core_, ttl](const asio::any_io_executor& executor,
                detail::verb_handler<void> handler, const asio::any_io_executor& caller) {
                start_extend(record, core, ttl, executor, std::move(handler), caller);
            },
            std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code)`. Of an empty lock: completes as `release` does, on the handler's executor. A handler without
    /// one is called before the function returns, because there is none to post it to.
    template <asio::completion_token_for<void(error_code)> CompletionToken = default_token>
    auto async_release(on_failure report, CompletionToken&& completion_token = CompletionToken())
    {
        return asio::async_initiate<CompletionToken, void(error_code)>(
            release_initiation{record_, core_, report}, completion_token);
    }
    template <asio::completion_token_for<void(error_code)> CompletionToken = default_token>
    auto async_release(CompletionToken&& completion_token = CompletionToken())
    {
        return async_release(on_failure::quiet, std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, std::string)`
    template <asio::completion_token_for<void(error_code, std::string)> CompletionToken = default_token>
    auto async_detach(CompletionToken&& completion_token = CompletionToken())
    {
        return detail::async_verb<std::string>(
            executor(), [record = record_, core = core_] { return detach_verb(record, core); },
            std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, lost_reason)`
    template <asio::completion_token_for<void(error_code, lost_reason)> CompletionToken = default_token>
    auto async_lost(CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_operation<lost_reason>(
            executor(),
            [record = record_, core = core_](const asio::any_io_executor& executor,
                detail::verb_handler<lost_reason> handler, const asio::any_io_executor& caller) {
                start_lost(record, core, executor, std::move(handler), caller);
            },
            std::forward<CompletionToken>(completion_token));
    }

private:
    friend class detail::record;
    friend class detail::core;
    using core_ptr = std::shared_ptr<detail::core>;

    struct release_initiation
    {
        using executor_type = detail::initiation_executor;

        claim_ptr record;
        core_ptr core;
        on_failure report;

        /// That of the system for an empty lock.
        [[nodiscard]] executor_type get_executor() const noexcept;
        template <class Handler>
        void operator()(Handler&& handler)
        {
            const auto caller = detail::executor_of(handler);
            start(detail::verb_handler<void>(
                      detail::code_completion<std::decay_t<Handler>>{std::forward<Handler>(handler)}),
                caller);
        }

    private:
        void start(detail::verb_handler<void> handler, const asio::any_io_executor& caller);
    };

    lock(claim_ptr&& record, core_ptr&& core) noexcept : record_(std::move(record)), core_(std::move(core)) {}

    /// \throws validation_error if the lock is empty
    [[nodiscard]] asio::any_io_executor executor() const;
    static void start_is_locked(const claim_ptr& record, const core_ptr& core, const asio::any_io_executor& executor,
        detail::verb_handler<bool> handler, const asio::any_io_executor& caller);
    static void start_extend(const claim_ptr& record, const core_ptr& core, std::chrono::milliseconds ttl,
        const asio::any_io_executor& executor, detail::verb_handler<void> handler, const asio::any_io_executor& caller);
    static void start_lost(const claim_ptr& record, const core_ptr& core, const asio::any_io_executor& executor,
        detail::verb_handler<lost_reason> handler, const asio::any_io_executor& caller);
    static asio::awaitable<std::string> detach_verb(claim_ptr record, core_ptr core);

    /// Always a detail::record.
    claim_ptr record_;
    core_ptr core_;
};

} // namespace colock
