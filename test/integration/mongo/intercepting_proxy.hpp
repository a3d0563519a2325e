// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "fake_server.hpp"
#include "server.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace colock::testing {

/// Forwards commands to a server. A test can replace commands or replies.
class intercepting_proxy
{
public:
    using document = mongo::detail::document;
    struct request
    {
        std::string_view command;
        /// The whole command, as JSON.
        std::string text;
        /// Sends the command to the server, and returns the reply.
        std::function<document()> carry_out;
    };
    using command_handler = std::function<document(const request&)>;
    /// Returns the reply to `hello`, made from the server's reply.
    using hello_handler = std::function<document(document)>;

    intercepting_proxy(asio::io_context& io, std::uint16_t upstream)
        : upstream_(upstream),
          server_(io, [this](std::string_view command, const document& asked) { return answer_to(command, asked); })
    {
    }

    [[nodiscard]] std::uint16_t port() const { return server_.port(); }
    /// Number of the connection whose command is being answered.
    [[nodiscard]] int connection() const noexcept { return server_.connection(); }
    /// Sets the function that answers all further commands.
    void on_command(command_handler how) { on_command_ = std::move(how); }
    void forward_all() { on_command_ = nullptr; }
    /// Sets the function that changes the messages of all further replies.
    void on_reply(fake_server::reply_handler how) { server_.on_reply(std::move(how)); }
    /// Sets the function that makes the replies to all further `hello` commands.
    void on_hello(hello_handler how) { on_hello_ = std::move(how); }

private:
    document answer_to(std::string_view command, const document& asked) const
    {
        if (command == "hello" || command == "isMaster" || command == "ismaster")
            return greet();
        document plain;
        bson_copy_to_excluding_noinit(
            asked.get(), plain.get(), "$db", "lsid", "$clusterTime", "$readPreference", nullptr);
        const auto text = plain.to_json();
        const auto carry_out = [&] { return ask_mongodb_unchecked(upstream_, "colock", text); };
        return on_command_ ? on_command_({command, text, carry_out}) : carry_out();
    }
    document greet() const
    {
        auto said = ask_mongodb(upstream_, "admin", R"({"hello":1})");
        return on_hello_ ? on_hello_(std::move(said)) : std::move(said);
    }

    const std::uint16_t upstream_;
    command_handler on_command_;
    hello_handler on_hello_;
    fake_server server_;
};

} // namespace colock::testing
