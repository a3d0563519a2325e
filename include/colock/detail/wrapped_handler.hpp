// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/associator.hpp>

namespace colock::detail {

/// The type of a handler that another one wraps. The alias exists so that a wrapper which does not include this header,
/// and so would not have the associator below, does not compile.
template <class Handler>
using wrapped_handler = Handler;

/// A completion handler with another one in its member `handler`, whose type it names in `wrapped_handler_type` by
/// `wrapped_handler`. It has the associated characteristics of that handler: executor, allocator, cancellation slot and
/// so on.
template <class Handler>
concept handler_wrapper = requires(const Handler& wrapper) {
    typename Handler::wrapped_handler_type;
    wrapper.handler;
};

} // namespace colock::detail

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
