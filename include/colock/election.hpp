// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/async_functions.hpp>
#include <colock/detail/body.hpp>
#include <colock/detail/election_operations.hpp>
#include <colock/detail/export.hpp>
#include <colock/keys.hpp>
#include <colock/leadership.hpp>
#include <colock/locker.hpp>
#include <colock/options.hpp>

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace colock::inline v0 {

/// Elects one leader among all processes that use the same key on the same backend. A cheap, copyable handle.
///
/// The leader is the holder of an exclusive lock, and its term is the fence of this lock: each term is greater than all
/// earlier terms of the key. A backend without fences has leaders whose term is always 0.
///
/// The guarantees are those of a lock. A process that is paused for longer than its lease may believe that it still
/// leads while another process leads. Pass the term to the resource, which must reject lower terms, see
/// docs/fencing.md. After a crash nobody leads until the ttl has passed, or on ZooKeeper until the session has ended.
///
/// The object contains a copy of the locker, so the locker is not ended while the object exists. A call that has begun
/// does not need the object: if the last copy of the locker is destroyed, the call ends as for the locker.
///
/// Executors, cancellation and the two families of functions are those of the locker.
///
/// Thread safety: distinct objects: safe. Shared objects: all functions are safe, except assigning and destroying.
class COLOCK_EXPORT election
{
public:
    /// \param candidate the locker whose process stands for election, or asks for the leader
    /// \param key the key of the lock that the leader holds; any string that is a key of the locker
    /// \param options options of the lock. The mode must be exclusive. `renewal` is automatic by default. Errors in the
    ///     options are thrown by the functions, not by the constructor.
    explicit election(locker candidate, key_name key, acquire_options options = {});

    /// Stands for election, runs `body` while this process leads, and begins again. Ends when the locker is shut down,
    /// when the call is cancelled, or with an error of the campaign.
    ///
    /// Body: a coroutine that takes `leadership&`, `lock&` or nothing, and returns `asio::awaitable<void>`. It is
    /// called once for each term, and runs as the body of `locker::with_lock`: on a strand of the caller's executor,
    /// with a lease that is renewed. It is cancelled (all types) `stop_margin` before the lease can end, when the loss
    /// of the lock becomes known, at a shutdown, and at each cancellation of the caller.
    ///
    /// Terms: the lock is released when the body has ended. The next campaign begins only after that, at once if the
    /// body has returned. With `capabilities::fifo`, candidates that wait are elected first; otherwise this process may
    /// be elected again. A body that calls `resign` may continue, but does not lead any more.
    ///
    /// Exceptions of the body: they do not end the function. The observer receives a `warning` with the text of the
    /// exception. After a body that has thrown, or a term that was lost, the function waits before the next campaign:
    /// 1 s at first, twice as long after each further one, at most 30 s. After a term of 30 s or more, and after a body
    /// that has returned, the delay is 1 s again.
    ///
    /// Shutdown: if the locker is shut down, or its last copy is destroyed, or the execution context of its adapter is
    /// destroyed, the function returns normally, during a body as soon as the body has ended.
    ///
    /// Cancellation: all three types have the same effect. The call ends with `operation_aborted`, during a body as
    /// soon as the body has ended, whatever the body returned or threw.
    ///
    /// Errors: those of locker::acquire, if a campaign failed for good. With the default retry policy, an unavailable
    /// backend is no such failure: the campaign goes on until the backend answers.
    /// \throws validation_error `invalid_options`: the mode of the options is not exclusive.
    template <class Body>
    [[nodiscard]] asio::awaitable<void> lead(Body body) const
    {
        if constexpr (detail::accepts_leader_body<Body>())
            return detail::lead(locker_.core(), key_, options_, std::move(body));
        else
            return {};
    }

    /// Waits until this process is elected. The candidates of one locker are served in the order of their calls.
    ///
    /// Not reentrant: a leader that campaigns again waits for the end of its own leadership.
    ///
    /// Cancellation and errors are those of locker::acquire.
    /// \throws validation_error `invalid_options`: the mode of the options is not exclusive.
    [[nodiscard]] asio::awaitable<leadership> campaign() const;

    /// Returns the current leader, as the backend reports it, or an empty optional if nobody leads. The leader may have
    /// changed when the caller receives the answer. Waits for at most the operation timeout of the locker.
    /// \throws validation_error `invalid_key`. `unsupported`: the backend does not list fences
    ///     (`capabilities::lists_fence`: Redis and its quorum).
    /// \throws error `unavailable`: no answer within the operation timeout. Otherwise the error of the backend.
    [[nodiscard]] asio::awaitable<std::optional<colock::leader>> leader() const;

    /// Waits until there is a leader whose term is greater than `after_term`, and returns it; 0 for any leader.
    ///
    /// Asks the backend once per second. A leader who leads for a shorter time may be missed.
    ///
    /// Cancellation: all types; the call ends with `operation_aborted`.
    /// Errors: those of leader(). The function does not repeat a request that has failed.
    /// \throws create_error `shutting_down`: the locker was shut down.
    [[nodiscard]] asio::awaitable<colock::leader> next_leader(std::uint64_t after_term) const;

    /// `void(error_code)`. The body runs on a strand of the adapter's executor.
    template <class Body, detail::token_or_handler<void(error_code)> CompletionToken = default_token>
    auto async_lead(Body body, CompletionToken&& completion_token = CompletionToken()) const
    {
        if constexpr (detail::accepts_leader_body<Body>()) {
            return detail::async_coroutine<void>(locker_.get_executor(),
                std::bind_front(&detail::lead<Body>, locker_.core(), key_, options_, std::move(body)),
                std::forward<CompletionToken>(completion_token));
        } else {
            return asio::awaitable<void>();
        }
    }
    /// `void(error_code, leadership)`
    template <detail::token_or_handler<void(error_code, leadership)> CompletionToken = default_token>
    auto async_campaign(CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_coroutine<leadership>(locker_.get_executor(),
            std::bind_front(&detail::operations::campaign, locker_.core(), key_, options_),
            std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, std::optional<leader>)`
    template <detail::token_or_handler<void(error_code, std::optional<colock::leader>)> CompletionToken = default_token>
    auto async_leader(CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_coroutine<std::optional<colock::leader>>(locker_.get_executor(),
            std::bind_front(&detail::operations::find_leader, locker_.core(), key_),
            std::forward<CompletionToken>(completion_token));
    }
    /// `void(error_code, leader)`
    template <detail::token_or_handler<void(error_code, colock::leader)> CompletionToken = default_token>
    auto async_next_leader(std::uint64_t after_term, CompletionToken&& completion_token = CompletionToken()) const
    {
        return detail::async_coroutine<colock::leader>(locker_.get_executor(),
            std::bind_front(&detail::operations::await_leader, locker_.core(), key_, after_term),
            std::forward<CompletionToken>(completion_token));
    }

private:
    locker locker_;
    std::string key_;
    acquire_options options_;
};

} // namespace colock::inline v0
