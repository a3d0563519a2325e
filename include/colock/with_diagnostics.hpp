// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/error.hpp>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <exception>
#include <type_traits>
#include <utility>

namespace colock {
namespace asio = boost::asio;

/// What an operation tells of its failure beside the error_code.
struct diagnostics
{
    /// The exception that the plain verb would have thrown: a colock::error, or a system_error with
    /// `operation_aborted` after a cancellation. Null after a success.
    std::exception_ptr failure{};
};

/// Completes with `void(std::exception_ptr, T)` where the operation completes with `void(error_code, T)`. The exception
/// of an `async_` function of colock is what the plain verb would throw, with key, backend, cause and detail; that of
/// any other operation is a system_error with its code. Other signatures are left as they are. A success allocates
/// nothing.
template <class CompletionToken>
struct with_diagnostics_t
{
    CompletionToken token;
};

/// As Boost.MySQL's function of that name.
///
///     co_await locker.async_acquire("report", asio::cancel_after(2s, with_diagnostics(asio::deferred)));
///
/// It may stand inside of other adapters, or around them.
template <class CompletionToken>
[[nodiscard]] constexpr with_diagnostics_t<std::decay_t<CompletionToken>> with_diagnostics(CompletionToken&& token)
{
    return {std::forward<CompletionToken>(token)};
}

/// The token of an `async_` function for which none is named: what it returns can be awaited, and throws what the plain
/// verb throws.
using default_token = with_diagnostics_t<asio::deferred_t>;

/// Completes as `CompletionToken` does, and writes into `told` before that.
template <class CompletionToken>
struct with_diagnostics_in_t
{
    CompletionToken token;
    diagnostics* told;
};

/// Leaves the signature of the operation as it is, and writes what the operation tells into `told` right before it
/// invokes the handler. `told` must live until then.
template <class CompletionToken>
[[nodiscard]] constexpr with_diagnostics_in_t<std::decay_t<CompletionToken>> with_diagnostics(
    diagnostics& told, CompletionToken&& token)
{
    return {std::forward<CompletionToken>(token), &told};
}

namespace detail {

template <class T, class Default>
struct associated_diagnostics;

/// Not found in `T` itself; `asio::associator` looks into the handlers that it wraps.
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

/// Where a handler wants its diagnostics to be written; null: nowhere. An associator, as those of Asio.
template <class T, class Default = diagnostics*>
struct associated_diagnostics : associated_diagnostics_of<T, Default>
{
};

/// The handler of `with_diagnostics(token)`. An operation that tells only a code gets an exception with it.
template <class Handler>
struct diagnosed_handler
{
    Handler handler;
    /// Written through the associator, to which a handler is const.
    mutable diagnostics told{};

    template <class First, class... Results>
    void operator()(First&& first, Results&&... results)
    {
        if constexpr (std::is_same_v<std::decay_t<First>, error_code>) {
            auto failure = std::exchange(told.failure, nullptr);
            if (first && !failure)
                failure = std::make_exception_ptr(boost::system::system_error(first));
            std::move(handler)(std::move(failure), std::forward<Results>(results)...);
        } else {
            std::move(handler)(std::forward<First>(first), std::forward<Results>(results)...);
        }
    }
    void operator()() { std::move(handler)(); }
};

/// The handler of `with_diagnostics(told, token)`.
template <class Handler>
struct handler_with_diagnostics
{
    Handler handler;
    diagnostics* told;

    template <class... Results>
    void operator()(Results&&... results)
    {
        std::move(handler)(std::forward<Results>(results)...);
    }
};

template <class Signature>
struct diagnosed_signature
{
    using type = Signature;
};
template <class R, class... Results>
struct diagnosed_signature<R(error_code, Results...)>
{
    using type = R(std::exception_ptr, Results...);
};
template <class Signature>
using diagnosed_signature_t = typename diagnosed_signature<Signature>::type;

/// An initiation whose handler is wrapped by `wrap` first.
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

struct wrap_diagnosed
{
    template <class Handler>
    [[nodiscard]] auto operator()(Handler&& handler) const
    {
        return diagnosed_handler<std::decay_t<Handler>>{std::forward<Handler>(handler)};
    }
};

struct wrap_with_diagnostics
{
    diagnostics* told;

    template <class Handler>
    [[nodiscard]] auto operator()(Handler&& handler) const
    {
        return handler_with_diagnostics<std::decay_t<Handler>>{std::forward<Handler>(handler), told};
    }
};

template <class Handler, class Default>
struct associated_diagnostics<diagnosed_handler<Handler>, Default>
{
    using type = diagnostics*;
    [[nodiscard]] static type get(const diagnosed_handler<Handler>& from, const Default& = {}) noexcept
    {
        return &from.told;
    }
};
template <class Handler, class Default>
struct associated_diagnostics<handler_with_diagnostics<Handler>, Default>
{
    using type = diagnostics*;
    [[nodiscard]] static type get(const handler_with_diagnostics<Handler>& from, const Default& = {}) noexcept
    {
        return from.told;
    }
};

} // namespace detail
} // namespace colock

template <class CompletionToken, class... Signatures>
struct boost::asio::async_result<colock::with_diagnostics_t<CompletionToken>, Signatures...>
    : async_result<CompletionToken, colock::detail::diagnosed_signature_t<Signatures>...>
{
    template <class Initiation, class Token, class... Arguments>
    static auto initiate(Initiation&& initiation, Token&& token, Arguments&&... arguments)
    {
        return async_initiate<colock::detail::diagnosed_signature_t<Signatures>...>(
            colock::detail::wrapping_initiation<std::decay_t<Initiation>, colock::detail::wrap_diagnosed>{
                std::forward<Initiation>(initiation), {}},
            std::forward<Token>(token).token, std::forward<Arguments>(arguments)...);
    }
};

template <class CompletionToken, class... Signatures>
struct boost::asio::async_result<colock::with_diagnostics_in_t<CompletionToken>, Signatures...>
    : async_result<CompletionToken, Signatures...>
{
    template <class Initiation, class Token, class... Arguments>
    static auto initiate(Initiation&& initiation, Token&& token, Arguments&&... arguments)
    {
        return async_initiate<Signatures...>(
            colock::detail::wrapping_initiation<std::decay_t<Initiation>, colock::detail::wrap_with_diagnostics>{
                std::forward<Initiation>(initiation), {token.told}},
            std::forward<Token>(token).token, std::forward<Arguments>(arguments)...);
    }
};

template <template <class, class> class Associator, class Handler, class DefaultCandidate>
struct boost::asio::associator<Associator, colock::detail::diagnosed_handler<Handler>, DefaultCandidate>
    : Associator<Handler, DefaultCandidate>
{
    static typename Associator<Handler, DefaultCandidate>::type get(
        const colock::detail::diagnosed_handler<Handler>& from) noexcept
    {
        return Associator<Handler, DefaultCandidate>::get(from.handler);
    }
    static auto get(const colock::detail::diagnosed_handler<Handler>& from, const DefaultCandidate& candidate) noexcept
    {
        return Associator<Handler, DefaultCandidate>::get(from.handler, candidate);
    }
};

template <template <class, class> class Associator, class Handler, class DefaultCandidate>
struct boost::asio::associator<Associator, colock::detail::handler_with_diagnostics<Handler>, DefaultCandidate>
    : Associator<Handler, DefaultCandidate>
{
    static typename Associator<Handler, DefaultCandidate>::type get(
        const colock::detail::handler_with_diagnostics<Handler>& from) noexcept
    {
        return Associator<Handler, DefaultCandidate>::get(from.handler);
    }
    static auto get(
        const colock::detail::handler_with_diagnostics<Handler>& from, const DefaultCandidate& candidate) noexcept
    {
        return Associator<Handler, DefaultCandidate>::get(from.handler, candidate);
    }
};
