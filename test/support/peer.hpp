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

/// A server inside the test, on a port of 127.0.0.1. `serve` handles each connection; the connection is closed when
/// `serve` returns.
class peer
{
public:
    class talk
    {
    public:
        explicit talk(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {}

        /// Reads what arrives next and appends it to the received text. Returns false at the end of the stream.
        asio::awaitable<bool> hear();
        /// Reads until `word` has arrived, and removes the text up to and including `word`. Returns false at the end of
        /// the stream.
        asio::awaitable<bool> hear(std::string_view word);
        /// Reads and removes this number of bytes. Returns an empty text at the end of the stream.
        asio::awaitable<std::string> hear_bytes(std::size_t count);
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
    /// Closes all connections and refuses new ones.
    void close();

private:
    struct state;
    std::shared_ptr<state> state_;
};

} // namespace colock::testing
