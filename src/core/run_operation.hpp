// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/front.hpp>

#include "core/context_service.hpp"
#include "core/core.hpp"
#include "core/parking.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_immediate_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
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

namespace colock::detail {

// An operation that may have to wait (acquire, release and the like) is a state machine: an object with
//
//   using result_type = ...;
//   static constexpr bool ends_when_closed;     // its waits end when the locker takes no new acquires any more
//   static constexpr bool checks_cancellation;  // in a coroutine: a cancellation that was recorded between two
//                                               // suspensions ends it before it waits
//   bool begin();                               // true: the result is ready
//   std::optional<wait_for> advance();          // what it waits for next; nothing: the result is ready
//   result_type result();                       // once
//   core& owner();
//
// All of them may throw, which ends it. Its destructor leaves to the core what it has begun. `await_operation` runs one
// in the coroutine that awaits it, and `start_operation` runs one for a completion handler.

/// A change of `source` since its version was `seen`.
struct wait_for
{
    waitable* source;
    std::uint32_t seen;
};

template <class Operation, class... Arguments>
asio::awaitable<typename Operation::result_type> await_operation(Arguments... arguments)
{
    Operation running(std::move(arguments)...);
    if (!running.begin()) {
        const auto throw_if_cancelled = [](asio::cancellation_state state) {
            if (state.cancelled() != asio::cancellation_type::none)
                throw boost::system::system_error(asio::error::operation_aborted);
        };
        parked place;
        place.ends_when_closed = Operation::ends_when_closed;
        // Nothing is sent after a cancellation, nor is anything waited for.
        if constexpr (Operation::checks_cancellation)
            throw_if_cancelled(co_await asio::this_coro::cancellation_state);
        while (const auto next = running.advance()) {
            if constexpr (Operation::checks_cancellation)
                throw_if_cancelled(co_await asio::this_coro::cancellation_state);
            co_await running.owner().park(*next->source, place, next->seen);
        }
    }
    co_return running.result();
}

/// Invokes `handler` with the code of `failure`, and with `result` unless that is void.
/// The code of an operation that ended with `failure`; none if that is null.
[[nodiscard]] error_code code_of(const std::exception_ptr& failure);

template <class T>
using stored_result = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

/// \param result none after a failure
template <class T>
void invoke_handler(verb_handler<T> handler, const std::exception_ptr& failure, std::optional<stored_result<T>> result)
{
    if constexpr (std::is_void_v<T>)
        std::move(handler)(code_of(failure));
    else
        std::move(handler)(code_of(failure), result ? *std::move(result) : T());
}

/// Posts `function` to an executor of another context than the locker's, unless that has shut down. Calls it at once if
/// that is the system's, whose threads are not to be started.
template <class Function>
void post_elsewhere(const asio::any_io_executor& executor, Function function)
{
    if (is_system(executor))
        function();
    else
        handler_registry::of(executor)->if_open([&] { asio::post(executor, std::move(function)); });
}

/// Runs an operation for a completion handler. The operation goes on where its handler is to be invoked; what wakes it
/// posts that. It keeps both contexts at work, its handler's and the locker's. If the handler's context shuts down
/// first, the handler is destroyed, and the operation is given up. If the locker's does, the operation ends with
/// `errc::shutting_down`.
///
/// Thread safety: one thread at a time runs it; the core's mutex and the registry's guard who wakes it.
template <class Operation>
class started_operation final : public waiter
{
public:
    using ptr = boost::intrusive_ptr<started_operation>;
    using result_type = typename Operation::result_type;
    using handler_type = verb_handler<result_type>;

    /// \param executor of the locker's context
    /// \param caller the handler's; empty if it has none
    template <class... Arguments>
    started_operation(const asio::any_io_executor& executor, handler_type&& handler,
        const asio::any_io_executor& caller, std::shared_ptr<core>&& owner, Arguments&&... arguments)
        : waiter(*owner),
          executor_(asio::prefer(caller ? caller : executor, asio::execution::outstanding_work.tracked)),
          handler_(std::move(handler))
    {
        how_.ends_when_closed = Operation::ends_when_closed;
        if (caller && &context_of(caller) != &context_of(executor))
            elsewhere_.emplace(owner, is_system(caller));
        running_.emplace(std::move(owner), std::forward<Arguments>(arguments)...);
    }

    /// In the initiating function.
    void start()
    {
        proceed([this] { return running_->begin() ? std::nullopt : running_->advance(); });
    }

    void resume(error_code why) override
    {
        next_turn turn{ptr(this), why};
        bool is_on_system = false;
        complete([&] {
            is_on_system = elsewhere_ && elsewhere_->on_system;
            if (!is_on_system)
                asio::post(executor_, std::move(turn));
        });
        if (!is_on_system)
            turn.dismiss();
        else if (!elsewhere_->owner->post_to_context(std::move(turn)))
            turn();
    }
    void discard() noexcept override
    {
        complete([] {});
    }

private:
    /// Of an operation whose handler belongs to another context than the locker.
    struct other_context
    {
        other_context(std::shared_ptr<core> of, bool system) : owner(std::move(of)), on_system(system)
        {
            owner->add_outside_handler();
        }
        other_context(const other_context&) = delete;
        other_context& operator=(const other_context&) = delete;
        ~other_context() { owner->remove_outside_handler(); }

        const std::shared_ptr<core> owner;
        const bool on_system;
    };

    /// Is destroyed without a call when the context of its executor is.
    class next_turn
    {
    public:
        next_turn(ptr which, error_code why) : which_(std::move(which)), why_(why) {}
        next_turn(next_turn&&) noexcept = default;
        next_turn& operator=(next_turn&&) = delete;
        ~next_turn()
        {
            if (which_)
                which_->give_up();
        }
        void operator()()
        {
            const ptr kept = std::move(which_);
            kept->is_starting_ = false;
            kept->proceed([&] {
                if (why_)
                    throw boost::system::system_error(why_);
                return kept->running_->advance();
            });
        }
        void dismiss() noexcept { which_.reset(); }

    private:
        ptr which_;
        error_code why_;
    };

    template <class Step>
    void proceed(Step step)
    {
        std::exception_ptr failure;
        try {
            if (const auto next = step()) {
                const auto slot = std::exchange(has_slot_, true) ? asio::cancellation_slot()
                                                                 : asio::get_associated_cancellation_slot(*handler_);
                running_->owner().suspend(ptr(this), executor_, slot, *next->source, how_, next->seen);
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
        running_.reset();
        // Given up meanwhile: there was no memory to post its next turn.
        if (!handler_)
            return;
        if (auto slot = asio::get_associated_cancellation_slot(*handler_); has_slot_ && slot.is_connected())
            slot.clear();
        handler_type handler = *std::move(handler_);
        handler_.reset();
        const auto executor = std::exchange(executor_, nullptr);
        if (!is_starting_)
            return invoke_handler<result_type>(std::move(handler), failure, std::move(result));
        const auto immediate = asio::get_associated_immediate_executor(handler, executor);
        auto invoke = [handler = std::move(handler), failure = std::move(failure),
                          result = std::move(result)]() mutable {
            invoke_handler<result_type>(std::move(handler), failure, std::move(result));
        };
        if (!elsewhere_)
            asio::dispatch(immediate, std::move(invoke));
        else if (!elsewhere_->on_system || !elsewhere_->owner->post_to_context(std::move(invoke)))
            post_elsewhere(executor, std::move(invoke));
    }

    void give_up() noexcept
    {
        running_.reset();
        handler_.reset();
        executor_ = nullptr;
        elsewhere_.reset();
    }
    void abandon() noexcept override
    {
        forget();
        give_up();
    }

    asio::any_io_executor executor_;
    std::optional<handler_type> handler_;
    std::optional<Operation> running_;
    std::optional<other_context> elsewhere_;
    parked how_;
    bool is_starting_ = true;
    bool has_slot_ = false;
};

/// Runs an operation, which is made of `owner` and `arguments`, and invokes `handler` with its result.
/// \param executor of the locker's context; empty if that has shut down
/// \param caller the handler's associated executor; empty if it has none
template <class Operation, class... Arguments>
void start_operation(const asio::any_io_executor& executor, verb_handler<typename Operation::result_type> handler,
    const asio::any_io_executor& caller, std::shared_ptr<core> owner, Arguments&&... arguments)
{
    using result_type = typename Operation::result_type;
    if (executor) {
        using running_type = started_operation<Operation>;
        const typename running_type::ptr running(new running_type(
            executor, std::move(handler), caller, std::move(owner), std::forward<Arguments>(arguments)...));
        running->start();
    } else if (caller) {
        post_elsewhere(caller, [handler = std::move(handler)]() mutable {
            invoke_handler<result_type>(
                std::move(handler), std::make_exception_ptr(create_error(errc::shutting_down, {})), std::nullopt);
        });
    }
    // Without an executor of its own, the handler is gone with the locker's context.
}

} // namespace colock::detail
