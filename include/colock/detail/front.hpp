// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/error.hpp>
#include <colock/with_diagnostics.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>

#include <exception>
#include <type_traits>
#include <utility>

namespace colock {
namespace asio = boost::asio;
}

namespace colock::detail {

/// void(error_code, T), or void(error_code).
template <class T>
struct verb_signature
{
    using type = void(error_code, T);
};
template <>
struct verb_signature<void>
{
    using type = void(error_code);
};
template <class T>
using verb_signature_t = typename verb_signature<T>::type;

/// What is told in the library: void(std::exception_ptr, T), or void(std::exception_ptr).
template <class T>
using verb_handler = asio::any_completion_handler<diagnosed_signature_t<verb_signature_t<T>>>;

/// The code of an operation that ended with `failure`; none if that is null.
[[nodiscard]] error_code code_of(const std::exception_ptr& failure);

/// Tells a handler the code of its failure, and writes the exception where it wants its diagnostics.
template <class Handler>
struct code_completion
{
    Handler handler;

    template <class... Results>
    void operator()(const std::exception_ptr& failure, Results... results)
    {
        if (auto* const told = associated_diagnostics<Handler>::get(handler))
            told->failure = failure;
        std::move(handler)(code_of(failure), std::move(results)...);
    }
};

/// The executor of an initiation. An adapter without a token of its own, such as `cancel_after(2s)`, wraps the token
/// that it names.
struct initiation_executor : asio::any_io_executor
{
    using default_completion_token_type = default_token;

    explicit initiation_executor(asio::any_io_executor of) noexcept : asio::any_io_executor(std::move(of)) {}
};

/// Returns the associated executor of `handler`. Empty if there is none, or if it does not convert to
/// `any_io_executor`.
template <class Handler>
[[nodiscard]] asio::any_io_executor executor_of(const Handler& handler)
{
    using associated = asio::associated_executor_t<Handler, asio::any_io_executor>;
    if constexpr (std::is_convertible_v<associated, asio::any_io_executor>)
        return asio::get_associated_executor(handler, asio::any_io_executor());
    else
        return {};
}

/// Runs `verb` on a strand of `executor`, accepting every cancellation type, and invokes `handler` with its result on
/// the handler's associated executor. `caller` is that executor, or empty if there is none. Defined and instantiated in
/// src/core/front.cpp for the result types of the library's verbs.
template <class T>
void run_verb(const asio::any_io_executor& executor, asio::awaitable<T> verb, verb_handler<T> handler,
    const asio::any_io_executor& caller);

/// Invokes `handler` with `failure`, which may be null, on `caller`, its associated executor. At once if
/// that is empty, or the system executor.
void end_verb(const std::exception_ptr& failure, verb_handler<void> handler, const asio::any_io_executor& caller);

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
        const auto caller = executor_of(handler);
        start(
            executor, verb_handler<T>(code_completion<std::decay_t<Handler>>{std::forward<Handler>(handler)}), caller);
    }
};

/// An `async_` function. `start` is given `executor`, the handler, and the handler's associated executor.
template <class T, class Start, class CompletionToken>
auto async_operation(asio::any_io_executor executor, Start start, CompletionToken&& completion_token)
{
    return asio::async_initiate<CompletionToken, verb_signature_t<T>>(
        operation_initiation<T, Start>{initiation_executor(std::move(executor)), std::move(start)}, completion_token);
}

/// The `async_` function of a coroutine: `verb` is a function object that returns its awaitable.
template <class T, class Verb, class CompletionToken>
auto async_verb(asio::any_io_executor executor, Verb verb, CompletionToken&& completion_token)
{
    auto start = [verb = std::move(verb)](const asio::any_io_executor& where, verb_handler<T> handler,
                     const asio::any_io_executor& caller) mutable {
        run_verb<T>(where, verb(), std::move(handler), caller);
    };
    return async_operation<T>(std::move(executor), std::move(start), std::forward<CompletionToken>(completion_token));
}

} // namespace colock::detail

template <template <class, class> class Associator, class Handler, class DefaultCandidate>
struct boost::asio::associator<Associator, colock::detail::code_completion<Handler>, DefaultCandidate>
    : Associator<Handler, DefaultCandidate>
{
    static typename Associator<Handler, DefaultCandidate>::type get(
        const colock::detail::code_completion<Handler>& completion) noexcept
    {
        return Associator<Handler, DefaultCandidate>::get(completion.handler);
    }
    static auto get(
        const colock::detail::code_completion<Handler>& completion, const DefaultCandidate& candidate) noexcept
    {
        return Associator<Handler, DefaultCandidate>::get(completion.handler, candidate);
    }
};
