// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/metrics.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <utility>

namespace asio = boost::asio;
namespace http = boost::beast::http;

/// Returns the metrics as text.
using metrics_source = std::function<std::string()>;

inline http::response<http::string_body> answer(
    const http::request<http::empty_body>& request, const metrics_source& metrics)
{
    http::response<http::string_body> response(http::status::ok, request.version());
    response.keep_alive(request.keep_alive());
    if (request.target() != "/metrics") {
        response.result(http::status::not_found);
    } else if (request.method() != http::verb::get) {
        response.result(http::status::method_not_allowed);
        response.set(http::field::allow, "GET");
    } else {
        response.set(http::field::content_type, colock::metrics::content_type);
        response.body() = metrics();
    }
    response.prepare_payload();
    return response;
}

/// Serves one client until it closes its connection, sends nothing for 30 seconds, or sends something else than a
/// request without a body.
inline asio::awaitable<void> serve(asio::ip::tcp::socket socket, metrics_source metrics)
{
    boost::beast::tcp_stream client(std::move(socket));
    boost::beast::flat_buffer buffer;
    for (bool keep_alive = true; keep_alive;) {
        http::request<http::empty_body> request;
        client.expires_after(std::chrono::seconds(30));
        if (const auto [failed, size] =
                co_await http::async_read(client, buffer, request, asio::as_tuple(asio::deferred));
            failed)
            co_return;
        const auto response = answer(request, metrics);
        keep_alive = response.keep_alive();
        client.expires_after(std::chrono::seconds(30));
        if (const auto [failed, size] = co_await http::async_write(client, response, asio::as_tuple(asio::deferred));
            failed)
            co_return;
    }
    client.socket().shutdown(asio::ip::tcp::socket::shutdown_send);
}

inline asio::awaitable<void> listen(asio::ip::tcp::acceptor acceptor, metrics_source metrics)
{
    for (;;)
        asio::co_spawn(
            acceptor.get_executor(), serve(co_await acceptor.async_accept(asio::deferred), metrics), asio::detached);
}
