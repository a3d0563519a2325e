// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/async_functions.hpp>

#include "core/operations/spawn_operation.hpp"
#include "core/operations/wait_until.hpp"
#include "core/state/core.hpp"
#include "core/state/suspended_handler.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace colock::inline v0::detail {

// An operation that may have to wait, such as acquire or release, is an object with these members:
//
//   using result_type = ...;
//   static constexpr on_close closing;          // whether its waits end when the locker accepts no new acquires
//   static constexpr bool checks_cancellation;  // a cancellation that was recorded between two suspensions ends the
//                                               // operation before it waits
//   bool begin();                               // returns true if the result is ready
//   std::optional<awaited_change> advance();    // returns the next change to wait for; empty: the result is ready
//   result_type result();                       // called once
//   core& owner_core();
//
// If a member function throws, or a wait is cancelled, the operation ends with the exception. If there is a member
// `void failed(const std::exception_ptr&) noexcept`, it is called with that exception. The destructor leaves
// unfinished requests to the core.
//
// A plain function awaits the operation in one coroutine. An `async_` function begins the operation inside the
// initiating function, and starts a coroutine only if the operation has to wait.

/// A change of `source` that an operation waits for. It has not happened if the version is still `seen`.
struct awaited_change
{
    condition* source;
    std::uint32_t seen;
};

template <class Operation>
void report_failure(Operation& running, const std::exception_ptr& failure) noexcept
{
    if constexpr (requires { running.failed(failure); })
        running.failed(failure);
}

/// Waits until the result of an operation is ready.
/// \param next the first change to wait for
template <class Operation>
asio::awaitable<typename Operation::result_type> finish_operation(
    std::unique_ptr<Operation> running, std::optional<awaited_change> next)
{
    try {
        for (; next; next = running->advance()) {
            if constexpr (Operation::checks_cancellation)
                throw_if_cancelled(co_await asio::this_coro::cancellation_state);
            co_await running->owner_core().async_wait(*next->source, next->seen, Operation::closing);
        }
        co_return running->result();
    } catch (...) {
        report_failure(*running, std::current_exception());
        throw;
    }
}

/// Begins and finishes an operation, constructed from `arguments`, in one coroutine frame, because there may be ten
/// thousand waiters.
template <class Operation, class... Arguments>
asio::awaitable<typename Operation::result_type> await_operation(Arguments... arguments)
{
    Operation running(std::move(arguments)...);
    try {
        if (!running.begin()) {
            // After a cancellation nothing is sent or awaited.
            if constexpr (Operation::checks_cancellation)
                throw_if_cancelled(co_await asio::this_coro::cancellation_state);
            while (const auto next = running.advance()) {
                if constexpr (Operation::checks_cancellation)
                    throw_if_cancelled(co_await asio::this_coro::cancellation_state);
                co_await running.owner_core().async_wait(*next->source, next->seen, Operation::closing);
            }
        }
        co_return running.result();
    } catch (...) {
        report_failure(running, std::current_exception());
        throw;
    }
}

/// Runs an operation, constructed from `self` and `arguments`, and invokes `handler` with its result.
template <class Operation, class... Arguments>
void start_operation(operation_handler<typename Operation::result_type> handler, const std::shared_ptr<core>& self,
    Arguments&&... arguments)
{
    using result_type = typename Operation::result_type;
    // The operation may be cancelled while it begins.
    cancellation_relay relay(asio::get_associated_cancellation_slot(handler), self->gate());
    auto running = std::make_unique<Operation>(self, std::forward<Arguments>(arguments)...);
    std::exception_ptr failure;
    std::optional<stored_result<result_type>> result;
    std::optional<awaited_change> next;
    try {
        if (!running->begin())
            next = running->advance();
        if (next && relay.is_cancelled())
            throw boost::system::system_error(asio::error::operation_aborted);
        if constexpr (std::is_void_v<result_type>) {
            if (!next)
                running->result();
        } else if (!next) {
            result.emplace(running->result());
        }
    } catch (...) {
        failure = std::current_exception();
        report_failure(*running, failure);
        next.reset();
    }
    if (next)
        return spawn_operation<result_type>(self->executor(), self->gate(), finish_operation(std::move(running), next),
            std::move(handler), std::move(relay));
    running.reset();
    complete_immediately<result_type>(self->executor(), std::move(handler), std::move(failure), std::move(result));
}

} // namespace colock::inline v0::detail
