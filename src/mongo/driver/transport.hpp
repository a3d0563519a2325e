// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/destination.hpp"
#include "mongo/driver/reply_validation.hpp"
#include "net/resolve.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/system/error_code.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace colock::inline v0::mongo::detail {

using error_code = boost::system::error_code;

/// One TCP or TLS connection to a server. It connects, reads and writes in the background. The user checks its state,
/// and a callback reports that the state has changed. A reply can be read once it is complete and valid. An invalid
/// reply is a failure of the connection.
///
/// Thread safety: none; belongs to its strand. Pending asynchronous operations keep it alive.
class transport final : public std::enable_shared_from_this<transport>
{
public:
    /// \param changed called on the strand when the state has changed; never from inside of a call to this object
    transport(const asio::any_io_executor& strand, std::function<void()> changed);
    transport(const transport&) = delete;
    transport& operator=(const transport&) = delete;

    /// Resolves the host, connects, and performs the TLS handshake if `to` has a TLS context. Must be called once.
    void open(const destination& to);
    /// Closes the connection. `changed` is not called any more.
    void close() noexcept;

    /// Returns whether bytes can be written and read: from the end of the connection set-up until a failure.
    [[nodiscard]] bool is_open() const noexcept { return open_; }
    /// Error that made the connection unusable. An end that the peer has announced is not a failure.
    [[nodiscard]] const error_code& failure() const noexcept { return failure_; }
    /// Text to append to the message of the failure, with details that the error code does not contain. May be empty.
    [[nodiscard]] std::string explanation() const;
    /// Returns whether the peer sends nothing more. Bytes that it has sent can still be read.
    [[nodiscard]] bool at_end() const noexcept { return at_end_; }
    /// Returns whether all written bytes were sent.
    [[nodiscard]] bool is_flushed() const noexcept { return unsent_.empty(); }

    /// Returns whether an idle connection is unusable: the peer has closed it, or has sent bytes without a request.
    [[nodiscard]] bool is_stale();

    /// Number of writes since the first bytes were read: all writes except the driver's handshake.
    [[nodiscard]] std::size_t requests() const noexcept { return requests_; }

    /// Number of bytes that `read` can return now.
    [[nodiscard]] std::size_t readable() const noexcept { return valid_.size(); }
    /// Starts to read if no bytes are available, so that `changed` reports the next reply, or bytes without a request.
    void await_bytes();
    [[nodiscard]] std::size_t read(std::span<std::byte> into) noexcept;
    /// Writes one request, in the background if necessary. The connection must be open and flushed, and the reply to
    /// the request before must have been read.
    void write(std::span<const std::span<const std::byte>> parts);

private:
    using tcp = asio::ip::tcp;
    using socket = asio::basic_stream_socket<tcp, remote::socket_executor>;
    using resolver = asio::ip::basic_resolver<tcp, remote::socket_executor>;

    void connect(const remote::addresses& found);
    void start_handshake();
    void opened();
    void fail(const error_code& error);
    void received(std::size_t count);
    [[nodiscard]] error_code validate_received() noexcept;
    void send_rest();
    template <class Use>
    void with_stream(Use use);

    const std::function<void()> changed_;
    resolver resolver_;
    socket socket_;
    std::optional<asio::ssl::stream<socket&>> tls_stream_;
    std::string server_name_;
    bool open_ = false;
    /// The TLS handshake has started, and has not succeeded.
    bool in_handshake_ = false;
    bool closed_ = false;
    bool at_end_ = false;
    bool reading_ = false;
    error_code failure_;

    std::array<std::byte, std::size_t{8} * 1024> buffer_;
    /// The bytes that were received since the last reply was read.
    std::vector<std::byte> received_;
    /// The unread rest of a valid reply in `received_`.
    std::span<std::byte> valid_;
    /// Header of the request whose reply is not complete yet.
    std::optional<message_header> request_;
    bool has_received_ = false;
    std::size_t requests_ = 0;
    std::string unsent_;
};

} // namespace colock::inline v0::mongo::detail
