// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/peer.hpp"

#include <boost/endian/conversion.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace colock::testing {

/// A server inside the test that accepts every session, with a timeout of 2 s, and gives the replies of the test.
class scripted_server
{
public:
    /// Numbers of requests in the protocol.
    enum operation : std::int32_t
    {
        remove = 2,
        exists = 3,
        write = 5,
        ping = 11,
        children = 12,
        check_all = 14,
        create = 15,
        close = -11,
    };
    static constexpr std::int32_t session_expired = -112;
    static constexpr std::int32_t throttled = -127;
    static constexpr std::int32_t no_node = -101;

    struct reply
    {
        std::int32_t error = 0;
        std::string body{};
        /// The connection is closed instead of a reply.
        bool is_lost = false;
    };

    scripted_server(asio::io_context& io, std::function<reply(std::int32_t)> answer)
        : answer_(std::move(answer)), peer_(io, [this](peer::talk& with) { return serve(with); })
    {
    }

    [[nodiscard]] std::uint16_t port() const { return peer_.port(); }
    /// Number of requests that were answered, without pings.
    [[nodiscard]] std::size_t requests() const noexcept { return requests_; }
    /// The path of the request that is being answered. Valid only for requests that begin with a path.
    [[nodiscard]] std::string path() const
    {
        const auto body = std::string_view(request_).substr(2 * sizeof(std::int32_t));
        return std::string(body.substr(sizeof(std::int32_t), static_cast<std::size_t>(read_number(body))));
    }

    /// Returns whether the request that is being answered contains this text, for example a part of a path.
    [[nodiscard]] bool contains(std::string_view text) const { return request_.find(text) != std::string::npos; }

    /// Returns the body of a reply that describes an ephemeral node of the session.
    static std::string stat(std::int64_t created_in, std::int64_t modified_in, std::int32_t version)
    {
        constexpr std::size_t rest_size = 16;
        return number(created_in) + number(modified_in) + std::string(2 * sizeof(std::int64_t), '\0') +
               number(version) + std::string(2 * sizeof(std::int32_t), '\0') + number(session) +
               std::string(rest_size, '\0');
    }
    /// Returns the body of a reply to a request for the children of a node that has one child.
    static std::string only_child(std::string_view name)
    {
        return number<std::int32_t>(1) + text(name) + stat(1, 1, 0);
    }
    static std::string text(std::string_view value)
    {
        return number(static_cast<std::int32_t>(value.size())).append(value);
    }

private:
    static constexpr std::int64_t session = 1;

    template <class Number>
    static std::string number(Number value)
    {
        std::string bytes(sizeof value, '\0');
        boost::endian::endian_store<Number, sizeof value, boost::endian::order::big>(
            reinterpret_cast<unsigned char*>(bytes.data()), value);
        return bytes;
    }
    static std::int32_t read_number(std::string_view from)
    {
        return boost::endian::load_big_s32(reinterpret_cast<const unsigned char*>(from.data()));
    }
    static asio::awaitable<std::string> hear_message(peer::talk& with)
    {
        const auto size = co_await with.hear_bytes(sizeof(std::int32_t));
        co_return size.empty() ? size : co_await with.hear_bytes(static_cast<std::size_t>(read_number(size)));
    }
    asio::awaitable<void> serve(peer::talk& with)
    {
        co_await hear_message(with);
        constexpr std::int32_t timeout = 2000;
        co_await with.say(text(number<std::int32_t>(0) + number(timeout) + number(session) +
                               text(std::string(16, 'p')) + std::string(1, '\0')));
        for (;;) {
            auto request = co_await hear_message(with);
            // Nothing is received any more when this object is gone.
            if (request.empty())
                co_return;
            request_ = std::move(request);
            const auto operation = read_number(std::string_view(request_).substr(sizeof(std::int32_t)));
            const auto got = operation == ping ? reply{} : answer_(operation);
            requests_ += operation == ping ? 0U : 1U;
            if (got.is_lost)
                co_return;
            co_await with.say(text(
                request_.substr(0, sizeof(std::int32_t)) + number<std::int64_t>(1) + number(got.error) + got.body));
            if (operation == close)
                co_return;
        }
    }

    const std::function<reply(std::int32_t)> answer_;
    std::size_t requests_ = 0;
    std::string request_{};
    peer peer_;
};

} // namespace colock::testing
