// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/framing.hpp"
#include "remote/resolve.hpp"

#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/redis/connection.hpp>
#include <boost/redis/error.hpp>

#include <cstddef>
#include <string_view>
#include <utility>

namespace colock::redis::detail {

/// The executor of a connection. It is that of everything else, under a name of its own: so the driver reads through
/// the stream below.
class link_executor : public asio::any_io_executor
{
public:
    using any_io_executor::any_io_executor;
    explicit link_executor(asio::any_io_executor other) noexcept : any_io_executor(std::move(other)) {}
};

/// Ends a read as an error if what was read must not be parsed.
template <class Handler>
struct framed_read
{
    framing* frames;
    const void* read;
    Handler handler;

    void operator()(boost::system::error_code code, std::size_t size)
    {
        if (!frames->accept({static_cast<const char*>(read), size})) {
            code = boost::redis::error::invalid_data_type;
            size = 0;
        }
        std::move(handler)(code, size);
    }
};

} // namespace colock::redis::detail

template <template <class, class> class Associator, class Handler, class DefaultCandidate>
struct boost::asio::associator<Associator, colock::redis::detail::framed_read<Handler>, DefaultCandidate>
    : Associator<Handler, DefaultCandidate>
{
    static auto get(const colock::redis::detail::framed_read<Handler>& completion) noexcept
    {
        return Associator<Handler, DefaultCandidate>::get(completion.handler);
    }
    static auto get(
        const colock::redis::detail::framed_read<Handler>& completion, const DefaultCandidate& candidate) noexcept
    {
        return Associator<Handler, DefaultCandidate>::get(completion.handler, candidate);
    }
};

/// The driver's stream, over TCP, TLS or a unix socket, with a look at what it reads. There is no public place for
/// that: of the driver's own names this needs the stream's, its constructor's arguments, and these two functions.
template <>
class boost::redis::detail::redis_stream<colock::redis::detail::link_executor>
    : public boost::redis::detail::redis_stream<colock::remote::socket_executor>
{
    using driver_stream = boost::redis::detail::redis_stream<colock::remote::socket_executor>;

public:
    redis_stream(colock::redis::detail::link_executor executor, boost::asio::ssl::context&& context)
        : driver_stream(colock::remote::socket_executor(std::move(executor)), std::move(context))
    {
    }

    template <class CompletionToken>
    auto async_connect(const connect_params& where, buffered_logger& log, CompletionToken&& token)
    {
        frames_ = {};
        return driver_stream::async_connect(where, log, std::forward<CompletionToken>(token));
    }

    template <class MutableBuffer, class CompletionToken>
    void async_read_some(const MutableBuffer& into, CompletionToken&& token)
    {
        boost::asio::async_initiate<CompletionToken, void(boost::system::error_code, std::size_t)>(
            [this](auto handler, boost::asio::mutable_buffer one) {
                driver_stream::async_read_some(one,
                    colock::redis::detail::framed_read<decltype(handler)>{&frames_, one.data(), std::move(handler)});
            },
            token, boost::asio::mutable_buffer(into.data(), into.size()));
    }

private:
    colock::redis::detail::framing frames_;
};
