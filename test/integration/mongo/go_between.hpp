// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "pretender.hpp"
#include "server.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace colock::testing {

/// Passes what it is asked on to a server, but for what a test wants done, or said, otherwise.
class go_between
{
public:
    using document = mongo::detail::document;
    struct request
    {
        std::string_view command;
        /// All of it.
        std::string text;
        /// Asks the server, and has its answer.
        std::function<document()> carry_out;
    };
    using whim = std::function<document(const request&)>;
    /// Makes the answer to `hello` from the server's.
    using introduction = std::function<document(document)>;

    go_between(asio::io_context& io, std::uint16_t upstream)
        : upstream_(upstream),
          face_(io, [this](std::string_view command, const document& asked) { return answer_to(command, asked); })
    {
    }

    [[nodiscard]] std::uint16_t port() const { return face_.port(); }
    /// Number of the connection whose question is being answered.
    [[nodiscard]] int connection() const noexcept { return face_.connection(); }
    /// From now on.
    void say(whim how) { how_ = std::move(how); }
    void be_honest() { how_ = nullptr; }
    /// From now on.
    void introduce(introduction how) { introduce_ = std::move(how); }

private:
    document answer_to(std::string_view command, const document& asked) const
    {
        if (command == "hello" || command == "isMaster" || command == "ismaster")
            return greet();
        document plain;
        bson_copy_to_excluding_noinit(
            asked.get(), plain.get(), "$db", "lsid", "$clusterTime", "$readPreference", nullptr);
        const auto text = plain.to_json();
        const auto carry_out = [&] { return reply_of_mongodb(upstream_, "colock", text); };
        return how_ ? how_({command, text, carry_out}) : carry_out();
    }
    document greet() const
    {
        auto said = ask_mongodb(upstream_, "admin", R"({"hello":1})");
        return introduce_ ? introduce_(std::move(said)) : std::move(said);
    }

    const std::uint16_t upstream_;
    whim how_;
    introduction introduce_;
    const pretender face_;
};

} // namespace colock::testing
