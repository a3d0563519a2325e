// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/async_functions.hpp>
#include <colock/detail/context_gate.hpp>
#include <colock/error.hpp>

#include "util/strand.hpp"

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/associated_immediate_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution/bad_executor.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/prefer.hpp>
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

/// Calls `function`. Throws std::bad_alloc if it throws bad_executor: without memory, a type-erased handler returns
/// empty executors.
template <class Function>
void translate_bad_executor(Function function)
{
    try {
        function();
    } catch (const asio::execution::bad_executor&) {
        throw std::bad_alloc();
    }
}

/// Forwards a cancellation from the caller's slot to the coroutine of an `async_` function.
///
/// The coroutine does not use the caller's slot. The function that co_spawn stores in a slot refers to the coroutine's
/// strand. A strand must not outlive its context, but the caller's signal may. Therefore co_spawn gets the slot of a
/// signal of this object, and the caller's slot holds a weak reference to that signal.
class cancellation_relay
{
public:
    /// All cancellation types mean the same to an operation, but a coroutine under co_spawn accepts `terminal` only.
    /// Therefore every type is forwarded as `terminal`. This is cheaper than an outer coroutine that changes the
    /// filter.
    /// \param gate the gate of the coroutine's context; null if that context has shut down
    cancellation_relay(asio::cancellation_slot callers, const std::shared_ptr<context_gate>& gate)
    {
        if (!gate || !callers.is_connected())
            return;
        target_ = std::make_shared<target>();
        callers.assign([gate, weak = std::weak_ptr(target_)](asio::cancellation_type type) {
            if (type == asio::cancellation_type::none)
                return;
            gate->if_open([&] {
                if (const auto relayed_to = weak.lock()) {
                    relayed_to->is_cancelled = true;
                    relayed_to->signal.emit(asio::cancellation_type::terminal);
                }
            });
        });
    }

    /// Whether the operation was cancelled. The signal does not reach a coroutine that has not been started yet.
    [[nodiscard]] bool is_cancelled() const noexcept { return target_ && target_->is_cancelled; }
    [[nodiscard]] asio::cancellation_slot slot() const noexcept
    {
        return target_ ? target_->signal.slot() : asio::cancellation_slot();
    }
    /// Must be called on the coroutine's strand after the coroutine has ended.
    void disconnect() noexcept { target_.reset(); }

private:
    struct target
    {
        asio::cancellation_signal signal;
        bool is_cancelled = false;
    };
    std::shared_ptr<target> target_;
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

/// Completes an operation inside its initiating function, as Asio does: dispatches the result to the handler's
/// immediate executor, and from there to the associated executor if it differs. By default, the immediate executor
/// posts to `executor`.
/// \param executor the executor of the locker's context; empty if that context has shut down. Then the result is
///   dispatched to the associated executor, by default the system executor. A post could start the threads of
///   `asio::system_context`.
template <class T>
void complete_immediately(const asio::any_io_executor& executor, operation_handler<T> handler,
    std::exception_ptr failure, std::optional<stored_result<T>> result)
{
    translate_bad_executor([&] {
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
template <class T>
void spawn_operation(const asio::any_io_executor& executor, const std::shared_ptr<context_gate>& gate,
    asio::awaitable<T> coroutine, operation_handler<T> handler, cancellation_relay relay)
{
    const auto spawn = [&] {
        translate_bad_executor([&] {
            const auto strand = new_strand(executor);
            const auto slot = relay.slot();
            // Keeps the context of that executor from running out of work.
            auto work = asio::prefer(asio::get_associated_executor(handler, asio::any_completion_executor(executor)),
                asio::execution::outstanding_work.tracked);
            auto complete = [handler = std::move(handler), relay = std::move(relay), work = std::move(work)](
                                std::exception_ptr failure, auto... result) mutable {
                // The handler may wait on its executor until the context is gone.
                relay.disconnect();
                asio::dispatch(work, [handler = std::move(handler), failure = std::move(failure),
                                         ... result = std::move(result)]() mutable {
                    std::move(handler)(std::move(failure), std::move(result)...);
                });
            };
            asio::co_spawn(strand, std::move(coroutine),
                asio::bind_cancellation_slot(slot, asio::bind_executor(strand, std::move(complete))));
        });
    };
    if (!executor || !gate || !gate->if_open(spawn))
        complete_immediately<T>(
            {}, std::move(handler), std::make_exception_ptr(create_error(errc::shutting_down, {})), {});
}

} // namespace colock::inline v0::detail
