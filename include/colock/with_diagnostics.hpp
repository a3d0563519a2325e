// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/detail/wrapped_handler.hpp>
#include <colock/error.hpp>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <exception>
#include <tuple>
#include <type_traits>
#include <utility>

namespace colock::inline v0 {
namespace asio = boost::asio;

/// The details of a failed operation.
struct diagnostics
{
    /// The exception that the function without the prefix `async_` would have thrown: a colock::error, or a
    /// system_error with `operation_aborted` after a cancellation. Null after a success.
    std::exception_ptr failure{};
};

/// The completion token that `with_diagnostics(token)` returns.
template <class CompletionToken>
struct with_diagnostics_t
{
    /// The token that is wrapped.
    CompletionToken token;
};

/// Makes an operation complete with `void(std::exception_ptr, T)` instead of `void(error_code, T)`. The exception of an
/// `async_` function of colock is the one that the function without the prefix would throw, with key, backend, cause
/// and detail. The exception of any other operation is a system_error with its code. Other signatures do not change. A
/// success allocates nothing. Boost.MySQL has a function with the same name and purpose.
///
///     co_await locker.async_acquire("report", asio::cancel_after(2s, with_diagnostics(asio::deferred)));
///
/// The token may be nested inside other token adapters, or contain them. `cancel_after` needs Boost 1.86 or later. Two
/// adapters of Asio have to be inside, because they take the code away:
/// - `as_tuple(with_diagnostics(token))` is refused by the compiler. Write `with_diagnostics(as_tuple(token))`.
/// - `redirect_error(with_diagnostics(token), code)` has no effect, and with `output` stores no failure of operations
///   other than colock's. The compiler cannot see the adapter there, because the signature has no trace of it.
template <class CompletionToken>
[[nodiscard]] constexpr with_diagnostics_t<std::decay_t<CompletionToken>> with_diagnostics(CompletionToken&& token)
{
    return {std::forward<CompletionToken>(token)};
}

/// The default completion token of each `async_` function. Its result can be awaited, and then throws the same
/// exceptions as the function without the prefix. `asio::as_tuple` without a token wraps it, and then the tuple begins
/// with the code.
struct default_token : with_diagnostics_t<asio::deferred_t>
{
};

/// The completion token that `with_diagnostics(output, token)` returns.
template <class CompletionToken>
struct with_diagnostics_output_t
{
    /// The token that is wrapped.
    CompletionToken token;
    /// Where the failure is stored. Not null.
    diagnostics* output;
};

/// Leaves the signature of an operation as it is. Clears `output` when the operation is initiated, and stores the
/// failure in it right before the handler is invoked. `output` must live until then.
template <class CompletionToken>
[[nodiscard]] constexpr with_diagnostics_output_t<std::decay_t<CompletionToken>> with_diagnostics(
    diagnostics& output, CompletionToken&& token)
{
    return {std::forward<CompletionToken>(token), &output};
}

namespace detail {

template <class T, class Default>
struct associated_diagnostics;

/// The default if neither `T` nor a handler that `T` wraps has diagnostics. `asio::associator` finds the wrapped
/// handler.
template <class T, class Default, class = void>
struct associated_diagnostics_of
{
    using type = Default;
    [[nodiscard]] static type get(const T&) noexcept { return {}; }
    [[nodiscard]] static type get(const T&, const Default& otherwise) noexcept { return otherwise; }
};
template <class T, class Default>
struct associated_diagnostics_of<T, Default,
    std::void_t<typename asio::associator<associated_diagnostics, T, Default>::type>>
    : asio::associator<associated_diagnostics, T, Default>
{
};

/// Associator that returns the object in which the failure of the operation is stored for a handler, or null. It
/// follows the pattern of the associators of Asio.
template <class T, class Default = diagnostics*>
struct associated_diagnostics : associated_diagnostics_of<T, Default>
{
};

/// Returns the failure of an operation that completes with `code`. `known` is the exception that the operation has
/// stored, if any.
[[nodiscard]] inline std::exception_ptr failure_of(const error_code& code, std::exception_ptr known)
{
    if (code && !known)
        return std::make_exception_ptr(boost::system::system_error(code));
    return known;
}

/// The handler of `with_diagnostics(token)`.
template <class Handler>
struct exception_handler
{
    using wrapped_handler_type = wrapped_handler<Handler>;
    Handler handler;
    /// Mutable, because an associator sees a const handler.
    mutable diagnostics stored{};

    template <class First, class... Results>
    void operator()(First&& first, Results&&... results)
    {
        if constexpr (std::is_same_v<std::decay_t<First>, error_code>)
            std::move(handler)(failure_of(first, std::move(stored.failure)), std::forward<Results>(results)...);
        else
            std::move(handler)(std::forward<First>(first), std::forward<Results>(results)...);
    }
    void operator()() { std::move(handler)(); }
};

/// Whether `asio::as_tuple` has taken the error code out of the signature.
template <class Signature>
constexpr bool is_code_in_tuple = false;
template <class R, class... Results>
constexpr bool is_code_in_tuple<R(std::tuple<error_code, Results...>)> = true;

/// The handler of `with_diagnostics(output, token)`.
template <class Handler>
struct diagnostics_output_handler
{
    using wrapped_handler_type = wrapped_handler<Handler>;
    Handler handler;
    diagnostics* output;

    template <class First, class... Results>
    void operator()(First&& first, Results&&... results)
    {
        if constexpr (std::is_same_v<std::decay_t<First>, error_code>)
            output->failure = failure_of(first, std::move(output->failure));
        else if constexpr (std::is_same_v<std::decay_t<First>, std::exception_ptr>)
            output->failure = first;
        else if constexpr (is_code_in_tuple<void(std::decay_t<First>)>)
            output->failure = failure_of(std::get<0>(first), std::move(output->failure));
        std::move(handler)(std::forward<First>(first), std::forward<Results>(results)...);
    }
    void operator()() { std::move(handler)(); }
};

template <class Handler, class Default>
struct associated_diagnostics<exception_handler<Handler>, Default>
{
    using type = diagnostics*;
    [[nodiscard]] static type get(const exception_handler<Handler>& from, const Default& = {}) noexcept
    {
        return &from.stored;
    }
};
template <class Handler, class Default>
struct associated_diagnostics<diagnostics_output_handler<Handler>, Default>
{
    using type = diagnostics*;
    [[nodiscard]] static type get(const diagnostics_output_handler<Handler>& from, const Default& = {}) noexcept
    {
        return from.output;
    }
};

template <class Signature>
struct exception_signature
{
    using type = Signature;
};
template <class R, class... Results>
struct exception_signature<R(error_code, Results...)>
{
    using type = R(std::exception_ptr, Results...);
};
/// `Signature` with std::exception_ptr instead of error_code.
template <class Signature>
using exception_signature_t = typename exception_signature<Signature>::type;

/// An initiation that wraps the handler with `wrap` and passes the result to another initiation.
template <class Initiation, class Wrap>
struct wrapping_initiation
{
    using executor_type = asio::associated_executor_t<Initiation>;

    Initiation initiation;
    Wrap wrap;

    [[nodiscard]] executor_type get_executor() const noexcept { return asio::get_associated_executor(initiation); }

    template <class Handler, class... Arguments>
    void operator()(Handler&& handler, Arguments&&... arguments) &&
    {
        std::move(initiation)(wrap(std::forward<Handler>(handler)), std::forward<Arguments>(arguments)...);
    }
    template <class Handler, class... Arguments>
    void operator()(Handler&& handler, Arguments&&... arguments) const&
    {
        auto copy = initiation;
        std::move(copy)(wrap(std::forward<Handler>(handler)), std::forward<Arguments>(arguments)...);
    }
};

template <class Initiation, class Wrap>
[[nodiscard]] auto wrap_initiation(Initiation&& initiation, Wrap wrap)
{
    return wrapping_initiation<std::decay_t<Initiation>, Wrap>{std::forward<Initiation>(initiation), std::move(wrap)};
}

struct wrap_exception
{
    template <class Handler>
    auto operator()(Handler&& handler) const
    {
        return exception_handler<std::decay_t<Handler>>{std::forward<Handler>(handler)};
    }
};
struct wrap_output
{
    diagnostics* output;

    template <class Handler>
    auto operator()(Handler&& handler) const
    {
        output->failure = nullptr;
        return diagnostics_output_handler<std::decay_t<Handler>>{std::forward<Handler>(handler), output};
    }
};

// The return types of both functions `initiate` are explicit. If they were deduced, the concept completion_token_for
// would compile the bodies with Asio's archetype of an initiation, which has no executor_type.

/// The result of an operation whose token, a `with_diagnostics_t<CompletionToken>`, makes it complete with an
/// exception.
template <class CompletionToken, class... Signatures>
struct exception_result : asio::async_result<CompletionToken, exception_signature_t<Signatures>...>
{
    template <class Initiation, class Token, class... Arguments>
    static auto initiate(Initiation&& initiation, Token&& token, Arguments&&... arguments)
        -> decltype(asio::async_initiate<decltype((std::forward<Token>(token).token)),
            exception_signature_t<Signatures>...>(
            std::declval<wrapping_initiation<std::decay_t<Initiation>, wrap_exception>>(), token.token,
            std::forward<Arguments>(arguments)...))
    {
        // Boost 1.83 does not deduce the type of the inner token.
        return asio::async_initiate<decltype((std::forward<Token>(token).token)), exception_signature_t<Signatures>...>(
            wrap_initiation(std::forward<Initiation>(initiation), wrap_exception{}), token.token,
            std::forward<Arguments>(arguments)...);
    }
};

} // namespace detail
} // namespace colock::inline v0

template <class... Signatures>
struct boost::asio::async_result<colock::default_token, Signatures...>
    : colock::detail::exception_result<boost::asio::deferred_t, Signatures...>
{
};

template <class CompletionToken, class... Signatures>
struct boost::asio::async_result<colock::with_diagnostics_t<CompletionToken>, Signatures...>
    : colock::detail::exception_result<CompletionToken, Signatures...>
{
    static_assert(!(colock::detail::is_code_in_tuple<Signatures> || ...),
        "write with_diagnostics(as_tuple(token)): inside as_tuple, with_diagnostics has no effect");
};

template <class CompletionToken, class... Signatures>
struct boost::asio::async_result<colock::with_diagnostics_output_t<CompletionToken>, Signatures...>
    : async_result<CompletionToken, Signatures...>
{
    template <class Initiation, class Token, class... Arguments>
    static auto initiate(Initiation&& initiation, Token&& token, Arguments&&... arguments)
        -> decltype(async_initiate<decltype((std::forward<Token>(token).token)), Signatures...>(
            std::declval<colock::detail::wrapping_initiation<std::decay_t<Initiation>, colock::detail::wrap_output>>(),
            token.token, std::forward<Arguments>(arguments)...))
    {
        return async_initiate<decltype((std::forward<Token>(token).token)), Signatures...>(
            colock::detail::wrap_initiation(
                std::forward<Initiation>(initiation), colock::detail::wrap_output{token.output}),
            token.token, std::forward<Arguments>(arguments)...);
    }
};
