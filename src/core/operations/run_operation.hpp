// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/async_functions.hpp>

#include "core/operations/relay.hpp"
#include "core/state/core.hpp"
#include "core/state/waiter.hpp"
#include "util/context_service.hpp"

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/associated_immediate_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace colock::inline v0::detail {

// An operation that may have to wait, such as acquire or release, is a state machine. It is an object with these
// members:
//
//   using result_type = ...;
//   static constexpr bool ends_when_closed;     // its waits end when the locker accepts no new acquires
//   static constexpr bool checks_cancellation;  // in a coroutine: a cancellation that was recorded between two
//                                               // suspensions ends the operation before it waits
//   bool begin();                               // returns true if the result is ready
//   std::optional<wait_for> advance();          // returns the next change to wait for; empty: the result is ready
//   result_type result();                       // called once
//   core& owner();
//
// If a member function throws, or a wait is cancelled, the operation ends with the exception. If there is a member
// `void on_failure(const std::exception_ptr&) noexcept`, it is called with that exception. The destructor leaves
// unfinished requests to the core. `await_operation` runs an operation in the coroutine that awaits it, and
// `start_operation` runs one for a completion handler.

/// A wait for a change of `source`, which has not changed if its version is still `seen`.
struct wait_for
{
    condition* source;
    std::uint32_t seen;
};

template <class Operation>
void notify_failure(Operation& running, const std::exception_ptr& failure) noexcept
{
    if constexpr (requires { running.on_failure(failure); })
        running.on_failure(failure);
}

template <class Operation, class... Arguments>
asio::awaitable<typename Operation::result_type> await_operation(Arguments... arguments)
{
    Operation running(std::move(arguments)...);
    try {
        if (!running.begin()) {
            wait_state suspension;
            suspension.ends_when_closed = Operation::ends_when_closed;
            // After a cancellation nothing is sent or awaited.
            if constexpr (Operation::checks_cancellation)
                throw_if_cancelled(co_await asio::this_coro::cancellation_state);
            while (const auto next = running.advance()) {
                if constexpr (Operation::checks_cancellation)
                    throw_if_cancelled(co_await asio::this_coro::cancellation_state);
                co_await running.owner().async_wait(*next->source, suspension, next->seen);
            }
        }
        co_return running.result();
    } catch (...) {
        notify_failure(running, std::current_exception());
        throw;
    }
}

template <class T>
using stored_result = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

/// The handler of an operation that runs in the locker's context.
template <class T>
struct local_completion
{
    operation_handler<T> handler;
    /// Whether the operation runs on the handler's executor. If not, the handler has no executor, or a type-erased one.
    bool runs_here;

    [[nodiscard]] asio::cancellation_slot slot() const { return asio::get_associated_cancellation_slot(handler); }

    /// \param result empty after a failure
    void operator()(std::exception_ptr failure, std::optional<stored_result<T>> result)
    {
        if (auto assigned = slot(); assigned.is_connected())
            assigned.clear();
        if constexpr (std::is_void_v<T>)
            std::move(handler)(std::move(failure));
        else
            std::move(handler)(std::move(failure), result ? *std::move(result) : T());
    }

    /// Follows the rules of Asio's own operations: an immediate result is dispatched to the immediate executor, and
    /// from there to the associated executor, if there is one. A handler without one runs on the operation's executor,
    /// so that its exception leaves the `run()` of the locker's context.
    /// \param executor the executor on which the operation runs
    static void deliver(local_completion done, const asio::any_io_executor& executor, bool is_starting,
        std::exception_ptr failure, std::optional<stored_result<T>> result)
    {
        if (!is_starting && done.runs_here)
            return done(std::move(failure), std::move(result));
        const asio::any_completion_executor here(executor);
        const auto associated = asio::get_associated_executor(done.handler, here);
        const bool has_executor = associated != here;
        if (!is_starting && !has_executor)
            return done(std::move(failure), std::move(result));
        throw_bad_alloc_for_bad_executor([&] {
            const asio::any_completion_executor first =
                is_starting
                    ? asio::any_completion_executor(asio::get_associated_immediate_executor(done.handler, executor))
                    : associated;
            asio::dispatch(
                first, asio::bind_executor(has_executor ? associated : first,
                           [done = std::move(done), failure = std::move(failure),
                               result = std::move(result)]() mutable { done(std::move(failure), std::move(result)); }));
        });
    }
};

/// The handler of an operation whose caller belongs to another context. The operation runs on a strand of the locker's
/// context. If that context shuts down, this object is destroyed without being invoked, which notifies the caller.
template <class T>
struct foreign_operation_completion
{
    using handler_type = foreign_handler<operation_handler<T>, T>;
    foreign_completion<handler_type> completion;

    [[nodiscard]] asio::cancellation_slot slot() const { return completion.get_cancellation_slot(); }

    void operator()(std::exception_ptr failure, std::optional<stored_result<T>> result)
    {
        if constexpr (std::is_void_v<T>)
            completion(std::move(failure));
        else
            completion(std::move(failure), result ? *std::move(result) : T());
    }

    static void deliver(foreign_operation_completion done, const asio::any_io_executor& executor, bool is_starting,
        std::exception_ptr failure, std::optional<stored_result<T>> result)
    {
        if (!is_starting)
            return done(std::move(failure), std::move(result));
        asio::post(
            executor, [done = std::move(done), failure = std::move(failure), result = std::move(result)]() mutable {
                done(std::move(failure), std::move(result));
            });
    }
};

/// Runs an operation on an executor of the locker's context, and passes its result to a completion. A change that the
/// operation waits for posts its next step. If the context shuts down, the completion is destroyed, and the operation
/// is abandoned.
///
/// Thread safety: one thread at a time runs the operation. The mutexes of the core and of the registry guard the
/// wake-up.
template <class Operation, class Completion>
class started_operation final : public waiter
{
public:
    using ptr = boost::intrusive_ptr<started_operation>;
    using result_type = typename Operation::result_type;

    template <class... Arguments>
    started_operation(const asio::any_io_executor& executor, Completion&& completion, std::shared_ptr<core>&& owner,
        Arguments&&... arguments)
        : waiter(*owner), executor_(asio::prefer(executor, asio::execution::outstanding_work.tracked)),
          completion_(std::move(completion))
    {
        suspension_.ends_when_closed = Operation::ends_when_closed;
        running_.emplace(std::move(owner), std::forward<Arguments>(arguments)...);
    }

    /// Called once, by the initiating function.
    void start()
    {
        proceed([this] {
            running_->owner().assign_cancellation(completion_->slot(), ptr(this));
            return running_->begin() ? std::nullopt : running_->advance();
        });
    }

    void discard() noexcept override
    {
        complete([] {});
    }

private:
    [[nodiscard]] asio::any_io_executor executor() const override { return executor_; }
    void invoke_handler(error_code why) override
    {
        is_starting_ = false;
        proceed([&] {
            if (why)
                throw boost::system::system_error(why);
            return running_->advance();
        });
    }
    void drop() noexcept override { give_up(); }

    template <class Step>
    void proceed(Step step)
    {
        std::exception_ptr failure;
        try {
            if (const auto next = step()) {
                running_->owner().suspend(ptr(this), executor_, *next->source, suspension_, next->seen);
                return;
            }
        } catch (...) {
            failure = std::current_exception();
        }
        end(std::move(failure));
    }

    void end(std::exception_ptr failure)
    {
        std::optional<stored_result<result_type>> result;
        if (!failure) {
            try {
                if constexpr (std::is_void_v<result_type>)
                    running_->result();
                else
                    result.emplace(running_->result());
            } catch (...) {
                failure = std::current_exception();
            }
        }
        if (failure)
            notify_failure(*running_, failure);
        running_.reset();
        // The destructors of the operation may have shut down the context, which destroyed the handler.
        if (!completion_)
            return;
        Completion completion = *std::move(completion_);
        completion_.reset();
        const auto executor = std::exchange(executor_, nullptr);
        Completion::deliver(std::move(completion), executor, is_starting_, std::move(failure), std::move(result));
    }

    void give_up() noexcept
    {
        running_.reset();
        completion_.reset();
        executor_ = nullptr;
    }
    void abandon() noexcept override
    {
        forget();
        give_up();
    }

    asio::any_io_executor executor_;
    std::optional<Completion> completion_;
    std::optional<Operation> running_;
    wait_state suspension_;
    bool is_starting_ = true;
};

template <class Operation, class Completion, class... Arguments>
void start_with(const asio::any_io_executor& executor, Completion completion, Arguments&&... arguments)
{
    using running_type = started_operation<Operation, Completion>;
    const typename running_type::ptr running(
        new running_type(executor, std::move(completion), std::forward<Arguments>(arguments)...));
    running->start();
}

/// Runs an operation, constructed from `owner` and `arguments`, and invokes `handler` with its result. If the caller
/// belongs to the locker's context, the operation runs on the handler's executor.
/// \param executor the executor of the locker's context; empty if that context has shut down
/// \param caller the handler's associated executor; empty if it has none, or a type-erased one
template <class Operation, class... Arguments>
void start_operation(const asio::any_io_executor& executor, operation_handler<typename Operation::result_type> handler,
    const asio::any_io_executor& caller, std::shared_ptr<core> owner, Arguments&&... arguments)
{
    using result_type = typename Operation::result_type;
    if (!caller || (executor && &context_of(caller) == &context_of(executor))) {
        // If the context is gone, the handler is gone with it.
        if (executor)
            start_with<Operation>(caller ? caller : executor,
                local_completion<result_type>{std::move(handler), static_cast<bool>(caller)}, std::move(owner),
                std::forward<Arguments>(arguments)...);
        return;
    }
    start_foreign<result_type>(executor, std::move(handler), caller, [&](const auto& strand, auto done) {
        start_with<Operation>(strand, foreign_operation_completion<result_type>{std::move(done)}, std::move(owner),
            std::forward<Arguments>(arguments)...);
    });
}

} // namespace colock::inline v0::detail
