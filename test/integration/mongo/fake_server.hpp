// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/document.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace colock::testing {

namespace asio = boost::asio;

/// Implements enough of MongoDB's protocol to simulate servers that the test server cannot imitate: a secondary, or a
/// server that gives wrong answers. Runs on `io`, which must not run any more after the
/// destruction of this object.
class fake_server
{
public:
    using document = mongo::detail::document;
    /// Returns the reply to a command. The first parameter is the name of the command.
    using command_handler = std::function<document(std::string_view command, const document& asked)>;

    /// Changes the message with the reply to a command.
    using reply_handler = std::function<void(std::string_view command, std::string& reply)>;

    fake_server(asio::io_context& io, command_handler on_command);

    /// Sets the function that changes all further replies.
    void on_reply(reply_handler how) { on_reply_ = std::move(how); }

    [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
    /// Number of the connection whose command is being answered.
    [[nodiscard]] int connection() const noexcept { return connection_; }

private:
    asio::awaitable<void> listen();
    asio::awaitable<void> serve(asio::ip::tcp::socket socket);
    [[nodiscard]] std::string answer_to(std::string_view message);

    const command_handler on_command_;
    reply_handler on_reply_;
    int connections_ = 0;
    int connection_ = 0;
    asio::ip::tcp::acceptor acceptor_;
};

} // namespace colock::testing
