// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/async_functions.hpp>
#include <colock/detail/wrapped_handler.hpp>
#include <colock/error.hpp>

#include "util/context_service.hpp"
#include "util/strand.hpp"

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/associated_immediate_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution/bad_executor.hpp>
#include <boost/asio/system_executor.hpp>

#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace colock::inline v0 {
namespace asio = boost::asio;
}

namespace colock::inline v0::detail {

/// Calls `use`, which uses the associated executors of a type-erased handler. Without memory, such a handler returns
/// empty executors.
template <class Use>
void throw_bad_alloc_for_bad_executor(Use use)
{
    try {
        use();
    } catch (const asio::execution::bad_executor&) {
        throw std::bad_alloc();
    }
}

/// The completion handler of the coroutine of an `async_` function. Calls the caller's handler, on that handler's
/// executor and with its allocator.
///
/// The cancellation slot is not the caller's. The function that co_spawn stores in a slot refers to the coroutine's
/// strand. A strand must not outlive its context, but the caller's signal may. Therefore the slot belongs to a signal
/// of this object, and the caller's slot holds a weak reference to that signal.
template <class Handler>
class relayed
{
public:
    using cancellation_slot_type = asio::cancellation_slot;
    using wrapped_handler_type = wrapped_handler<Handler>;

    /// All cancellation types mean the same to an operation, but a coroutine under co_spawn accepts `terminal` only.
    /// Therefore every type is forwarded as `terminal`. This is cheaper than an outer coroutine that changes the
    /// filter.
    /// \param gate the gate of the coroutine's context; null if that context has shut down
    relayed(Handler wrapped, const std::shared_ptr<context_gate>& gate) : handler(std::move(wrapped))
    {
        auto outer = asio::get_associated_cancellation_slot(handler);
        if (!gate || !outer.is_connected())
            return;
        inner_ = std::make_shared<inner_signal>();
        outer.assign([gate, weak = std::weak_ptr(inner_)](asio::cancellation_type type) {
            if (type == asio::cancellation_type::none)
                return;
            gate->if_open([&] {
                if (const auto inner = weak.lock()) {
                    inner->is_cancelled = true;
                    inner->signal.emit(asio::cancellation_type::terminal);
                }
            });
        });
    }

    /// Whether the operation was cancelled. The signal does not reach a coroutine that has not been started yet.
    [[nodiscard]] bool is_cancelled() const noexcept { return inner_ && inner_->is_cancelled; }
    [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept
    {
        return inner_ ? inner_->signal.slot() : cancellation_slot_type();
    }

    template <class... Results>
    void operator()(Results... results)
    {
        std::move(handler)(std::move(results)...);
    }

    Handler handler;

private:
    struct inner_signal
    {
        asio::cancellation_signal signal;
        bool is_cancelled = false;
    };
    std::shared_ptr<inner_signal> inner_;
};

template <class T>
using stored_result = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

/// \param result empty after a failure
template <class T>
void invoke(operation_handler<T> handler, std::exception_ptr failure, std::optional<stored_result<T>> result)
{
    if constexpr (std::is_void_v<T>)
        std::move(handler)(std::move(failure));
    else
        std::move(handler)(std::move(failure), result ? *std::move(result) : T());
}

/// Completes an operation inside its initiating function, by the rules of Asio's own operations: the result is
/// dispatched to the handler's immediate executor, which by default posts to the executor of the operation, and from
/// there to the associated executor, if there is one.
/// \param executor the executor of the locker's context; empty if that context has shut down. Then the result is
///   dispatched to the associated executor, by default the system executor.
template <class T>
void complete_at_once(const asio::any_io_executor& executor, operation_handler<T> handler, std::exception_ptr failure,
    std::optional<stored_result<T>> result)
{
    throw_bad_alloc_for_bad_executor([&] {
        using any_executor = asio::any_completion_executor;
        const any_executor here = executor ? any_executor(executor) : any_executor(asio::system_executor());
        const any_executor associated = asio::get_associated_executor(handler, here);
        const any_executor first =
            executor ? any_executor(asio::get_associated_immediate_executor(handler, executor)) : associated;
        auto deliver = [handler = std::move(handler), failure = std::move(failure),
                           result = std::move(result)]() mutable {
            invoke<T>(std::move(handler), std::move(failure), std::move(result));
        };
        if (associated == here)
            asio::dispatch(first, std::move(deliver));
        else
            asio::dispatch(first, asio::bind_executor(associated, std::move(deliver)));
    });
}

/// Runs `coroutine` on a strand of the locker's context, and dispatches its result to the handler's associated
/// executor. If the context is destroyed before the coroutine ends, the handler is destroyed and not invoked.
/// \param executor the executor of the locker's context; empty if that context has shut down
/// \param gate the gate of that context
/// \param done calls the handler
template <class T>
void spawn_operation(const asio::any_io_executor& executor, const std::shared_ptr<context_gate>& gate,
    asio::awaitable<T> coroutine, relayed<operation_handler<T>> done)
{
    const auto spawn = [&] {
        throw_bad_alloc_for_bad_executor(
            [&] { asio::co_spawn(new_strand(executor), std::move(coroutine), std::move(done)); });
    };
    if (!executor || !gate || !gate->if_open(spawn))
        complete_at_once<T>(
            {}, std::move(done.handler), std::make_exception_ptr(create_error(errc::shutting_down, {})), {});
}

} // namespace colock::inline v0::detail
