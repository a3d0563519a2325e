// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace colock::testing {

namespace asio = boost::asio;

/// A server of the test's own, on a port of 127.0.0.1: each of its connections is what `serve` says in it, and ends
/// with that.
class peer
{
public:
    class talk
    {
    public:
        explicit talk(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {}

        /// What has arrived, in addition to what had; false at the end.
        asio::awaitable<bool> hear();
        /// Until `word` has been heard; false at the end. Nothing that was heard before counts again.
        asio::awaitable<bool> hear(std::string_view word);
        asio::awaitable<void> say(std::string_view text);

    private:
        friend peer;
        asio::ip::tcp::socket socket_;
        std::string heard_{};
    };
    using service = std::function<asio::awaitable<void>(talk&)>;

    peer(asio::io_context& io, service serve);
    ~peer();
    peer(const peer&) = delete;
    peer& operator=(const peer&) = delete;

    [[nodiscard]] std::uint16_t port() const;
    [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port()); }
    [[nodiscard]] std::size_t connections() const noexcept;
    /// Ends all connections, and refuses new ones.
    void close();

private:
    struct state;
    std::shared_ptr<state> state_;
};

} // namespace colock::testing
