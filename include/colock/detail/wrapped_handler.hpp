// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/associator.hpp>

namespace colock::inline v0::detail {

/// The type of a handler that is wrapped by another handler. Every wrapper must name it through this alias. A wrapper
/// that does not include this header would lack the associator below; the alias turns that mistake into a compile
/// error.
template <class Handler>
using wrapped_handler = Handler;

/// A completion handler that contains another handler in its member `handler`. The wrapper declares the type of the
/// inner handler as `wrapped_handler_type`, by the alias `wrapped_handler`. It has the associated characteristics of
/// the inner handler: executor, allocator, cancellation slot and so on.
template <class Handler>
concept handler_wrapper = requires(const Handler& wrapper) {
    typename Handler::wrapped_handler_type;
    wrapper.handler;
};

} // namespace colock::inline v0::detail

template <template <class, class> class Associator, colock::detail::handler_wrapper Wrapper, class DefaultCandidate>
struct boost::asio::associator<Associator, Wrapper, DefaultCandidate>
    : Associator<typename Wrapper::wrapped_handler_type, DefaultCandidate>
{
    using wrapped = Associator<typename Wrapper::wrapped_handler_type, DefaultCandidate>;

    static typename wrapped::type get(const Wrapper& wrapper) noexcept { return wrapped::get(wrapper.handler); }
    static auto get(const Wrapper& wrapper, const DefaultCandidate& candidate) noexcept
    {
        return wrapped::get(wrapper.handler, candidate);
    }
};
