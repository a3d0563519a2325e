// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// The connection type of Boost.Redis, with a check of every received byte before the driver parses it.
//
// Why: the RESP3 parser of Boost.Redis 1.92 fails on input that no Redis server sends, but that another program may
// send; see `framing`. A bulk string without a length ends the process, because an exception leaves a noexcept
// function.
//
// How: Boost.Redis has no public hook for received bytes, so this file specializes a template of its `detail`
// namespace. The specialization is enabled only for the Boost versions below, with which it is tested. With any other
// version the plain connection type is used, nothing is checked, and CMake reports this when it configures.
//
// When to remove: once the oldest supported Boost.Redis reports an error for the `invalid_streams` of
// test/unit/redis/streams.hpp. The test `redis_hostile` checks this.
#pragma once

#include "net/resolve.hpp"
#include "redis/connection/framing.hpp"

#include <colock/detail/wrapped_handler.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/redis/connection.hpp>
#include <boost/redis/error.hpp>
#include <boost/version.hpp>

#include <cstddef>
#include <utility>

// Keep the versions in sync with CMakeLists.txt of src/redis.
#ifndef COLOCK_REDIS_VALIDATES_REPLIES
#define COLOCK_REDIS_VALIDATES_REPLIES (BOOST_VERSION / 100 == 1092)
#endif

namespace colock::inline v0::redis::detail {

inline constexpr bool validates_replies = COLOCK_REDIS_VALIDATES_REPLIES;

#if COLOCK_REDIS_VALIDATES_REPLIES

/// Executor type that selects the specialization below.
class validating_executor : public asio::any_io_executor
{
public:
    using any_io_executor::any_io_executor;
    explicit validating_executor(asio::any_io_executor other) noexcept : any_io_executor(std::move(other)) {}
};

/// Read handler that reports an error if the bytes that were read are invalid.
template <class Handler>
struct validated_read
{
    using wrapped_handler_type = colock::detail::wrapped_handler<Handler>;
    framing* checker;
    const void* bytes;
    Handler handler;

    void operator()(boost::system::error_code error, std::size_t size)
    {
        if (!checker->accept({static_cast<const char*>(bytes), size})) {
            error = boost::redis::error::invalid_data_type;
            size = 0;
        }
        std::move(handler)(error, size);
    }
};

#else

using validating_executor = remote::socket_executor;

#endif

using driver_connection = boost::redis::basic_connection<validating_executor>;

} // namespace colock::inline v0::redis::detail

#if COLOCK_REDIS_VALIDATES_REPLIES

/// Stream of Boost.Redis over TCP, TLS or a Unix socket. Uses only the following names of the driver's `detail`
/// namespace: the stream, the arguments of its constructor, and the two functions below.
template <>
class boost::redis::detail::redis_stream<colock::redis::detail::validating_executor>
    : public boost::redis::detail::redis_stream<colock::remote::socket_executor>
{
    using driver_stream = boost::redis::detail::redis_stream<colock::remote::socket_executor>;

public:
    redis_stream(colock::redis::detail::validating_executor executor, boost::asio::ssl::context&& context)
        : driver_stream(colock::remote::socket_executor(std::move(executor)), std::move(context))
    {
    }

    template <class CompletionToken>
    auto async_connect(const connect_params& params, buffered_logger& log, CompletionToken&& token)
    {
        framing_ = {};
        return driver_stream::async_connect(params, log, std::forward<CompletionToken>(token));
    }

    template <class MutableBuffer, class CompletionToken>
    void async_read_some(const MutableBuffer& buffers, CompletionToken&& token)
    {
        boost::asio::async_initiate<CompletionToken, void(boost::system::error_code, std::size_t)>(
            [this](auto handler, boost::asio::mutable_buffer buffer) {
                driver_stream::async_read_some(buffer, colock::redis::detail::validated_read<decltype(handler)>{
                                                           &framing_, buffer.data(), std::move(handler)});
            },
            token, boost::asio::mutable_buffer(buffers.data(), buffers.size()));
    }

private:
    colock::redis::detail::framing framing_;
};

#endif
