// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "desk.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>

#include <chrono>
#include <utility>

/// Serves one client until it closes its connection, or sends nothing for 30 seconds.
inline asio::awaitable<void> serve(asio::ip::tcp::socket socket, const desk& clerk)
{
    boost::beast::tcp_stream client(std::move(socket));
    boost::beast::flat_buffer buffer;
    for (bool keep_alive = true; keep_alive;) {
        http::request_parser<http::string_body> parser;
        parser.body_limit(1024);
        client.expires_after(std::chrono::seconds(30));
        const auto [failed, length] = co_await http::async_read(client, buffer, parser, asio::as_tuple(asio::deferred));
        if (failed == http::error::end_of_stream)
            co_return;
        const bool malformed = failed.category() == make_error_code(http::error::bad_method).category();
        if (failed && !malformed)
            co_return;

        const request& received = parser.get();
        const auto fault =
            failed == http::error::body_limit ? http::status::payload_too_large : http::status::bad_request;
        response answer = make_response(fault, failed.message());
        if (!malformed)
            answer = co_await clerk.answer(received);
        answer.version(received.version());
        keep_alive = !malformed && received.keep_alive();
        answer.keep_alive(keep_alive);
        answer.prepare_payload();
        if (received.method() == http::verb::head)
            answer.body().clear(); // the Content-Length header is still sent
        client.expires_after(std::chrono::seconds(30));
        if (const auto [error, size] = co_await http::async_write(client, answer, asio::as_tuple(asio::deferred));
            error)
            co_return;
    }
    client.socket().shutdown(asio::ip::tcp::socket::shutdown_send);
}

inline asio::awaitable<void> listen(asio::ip::tcp::acceptor acceptor, const desk& clerk)
{
    for (;;)
        asio::co_spawn(
            acceptor.get_executor(), serve(co_await acceptor.async_accept(asio::deferred), clerk), asio::detached);
}
