// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/export.hpp>
#include <colock/detail/wrapped_handler.hpp>
#include <colock/error.hpp>
#include <colock/with_diagnostics.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>

#include <exception>
#include <type_traits>
#include <utility>

namespace colock::inline v0 {
namespace asio = boost::asio;
}

namespace colock::inline v0::detail {

/// Completion signature of an `async_` function: void(error_code, T), or void(error_code).
template <class T>
struct operation_signature
{
    using type = void(error_code, T);
};
template <>
struct operation_signature<void>
{
    using type = void(error_code);
};
template <class T>
using operation_signature_t = typename operation_signature<T>::type;

/// The type-erased handler of an operation: void(std::exception_ptr, T), or void(std::exception_ptr).
template <class T>
using operation_handler = asio::any_completion_handler<exception_signature_t<operation_signature_t<T>>>;

/// Returns the error code of an operation that ended with `failure`, or no error if `failure` is null.
COLOCK_EXPORT [[nodiscard]] error_code code_of(const std::exception_ptr& failure);

struct call_operator
{
    void operator()();
};
/// Inherits two call operators if `T` has one.
template <class T>
struct call_operator_of : T, call_operator
{
};

/// Whether a type has a call operator, with any parameters.
template <class T>
concept callable_object = std::is_class_v<T> && !std::is_final_v<T> && !requires { &call_operator_of<T>::operator(); };

/// Whether an argument is a completion token, or meant as a handler, so that a handler with wrong parameters selects
/// the function that refuses it. Nothing else is accepted, because functions have optional parameters before the token.
template <class T, class Signature>
concept token_or_handler = asio::completion_token_for<T, Signature> || callable_object<std::remove_cvref_t<T>> ||
                           std::is_function_v<std::remove_pointer_t<std::decay_t<T>>>;

/// The awaitable that a function returns after it has refused its handler. It is never run, and spares the caller's
/// `co_await` an error of its own.
template <class Signature>
struct refused_result
{
    using type = asio::awaitable<void>;
};
template <class Failure, class T>
struct refused_result<void(Failure, T)>
{
    using type = asio::awaitable<T>;
};

/// Initiates an operation. Refuses a handler with wrong parameters.
template <class Signature, class Initiation, class CompletionToken>
auto initiate(Initiation&& initiation, CompletionToken&& completion_token)
{
    constexpr bool is_accepted = asio::completion_token_for<CompletionToken, Signature>;
    static_assert(is_accepted,
        "the handler takes a boost::system::error_code (of async_with_lock and async_try_with_lock, and inside "
        "with_diagnostics: a std::exception_ptr), and then the result, if there is one");
    if constexpr (is_accepted)
        return asio::async_initiate<CompletionToken, Signature>(std::forward<Initiation>(initiation), completion_token);
    else
        return typename refused_result<Signature>::type();
}

/// Calls a handler with the code of the failure, and stores the exception in its associated diagnostics.
template <class Handler>
struct code_completion
{
    using wrapped_handler_type = wrapped_handler<Handler>;
    Handler handler;

    template <class... Results>
    void operator()(const std::exception_ptr& failure, Results... results)
    {
        if (auto* const output = associated_diagnostics<Handler>::get(handler))
            output->failure = failure;
        std::move(handler)(code_of(failure), std::move(results)...);
    }
};

/// The executor of an initiation. A token adapter without a token of its own, such as `cancel_after(2s)`, wraps the
/// default token of this executor.
struct initiation_executor : asio::any_io_executor
{
    using default_completion_token_type = default_token;

    explicit initiation_executor(asio::any_io_executor executor) noexcept : asio::any_io_executor(std::move(executor))
    {
    }
};

/// Runs `coroutine` on a strand of `executor`, accepting every cancellation type, and invokes `handler` with its result
/// on the handler's associated executor. Defined and instantiated in src/core/api/async_functions.cpp for the result
/// types of the library's operations.
template <class T>
COLOCK_EXPORT void run_coroutine(
    const asio::any_io_executor& executor, asio::awaitable<T> coroutine, operation_handler<T> handler);

/// Dispatches `handler` with `failure`, which may be null, to its associated executor, by default the system executor.
COLOCK_EXPORT void complete_operation(const std::exception_ptr& failure, operation_handler<void> handler);

template <class T, class Start>
struct operation_initiation
{
    using executor_type = initiation_executor;
    executor_type executor;
    Start start;

    [[nodiscard]] executor_type get_executor() const noexcept { return executor; }

    template <class Handler>
    void operator()(Handler&& handler)
    {
        std::move(start)(operation_handler<T>(code_completion<std::decay_t<Handler>>{std::forward<Handler>(handler)}));
    }
};

/// Implements an `async_` function. Calls `start` with the handler. `executor` is that of the locker.
template <class T, class Start, class CompletionToken>
auto async_operation(asio::any_io_executor executor, Start start, CompletionToken&& completion_token)
{
    return initiate<operation_signature_t<T>>(
        operation_initiation<T, Start>{initiation_executor(std::move(executor)), std::move(start)},
        std::forward<CompletionToken>(completion_token));
}

/// Implements the `async_` function of a coroutine. `make_coroutine` is a function object that returns the awaitable.
template <class T, class Function, class CompletionToken>
auto async_coroutine(asio::any_io_executor executor, Function make_coroutine, CompletionToken&& completion_token)
{
    auto start = [executor, make_coroutine = std::move(make_coroutine)](operation_handler<T> handler) mutable {
        run_coroutine<T>(executor, std::move(make_coroutine)(), std::move(handler));
    };
    return async_operation<T>(std::move(executor), std::move(start), std::forward<CompletionToken>(completion_token));
}

} // namespace colock::inline v0::detail
