// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/destination.hpp"
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

namespace colock::mongo::detail {

using error_code = boost::system::error_code;

/// One connection to a server: begun at once, and made, filled and emptied in the background. Whoever uses it looks,
/// and is told when it is worth looking again.
///
/// Thread safety: none; belongs to its strand, and is kept by what is under way.
class transport final : public std::enable_shared_from_this<transport>
{
public:
    /// \param changed told, from the strand, that something has; never from inside a call
    transport(const asio::any_io_executor& strand, std::function<void()> changed);
    transport(const transport&) = delete;
    transport& operator=(const transport&) = delete;

    /// Looks the host up, connects, and goes on to TLS if there is a context. Once.
    void open(const destination& to);
    /// Nobody is told of anything any more.
    void close() noexcept;

    /// Bytes may be written and read; until it has failed.
    [[nodiscard]] bool is_open() const noexcept { return open_; }
    /// Why it is of no use any more. An end that the peer has announced is none.
    [[nodiscard]] const error_code& failure() const noexcept { return failure_; }
    /// What the code of the failure does not tell, to be said behind it; may be empty.
    [[nodiscard]] std::string explanation() const;
    /// The peer sends nothing more; what it has sent can still be read.
    [[nodiscard]] bool at_end() const noexcept { return at_end_; }
    /// All that was written is on its way.
    [[nodiscard]] bool is_flushed() const noexcept { return unsent_.empty(); }

    /// Between two exchanges: the peer has ended it, or says what nobody has asked for.
    [[nodiscard]] bool is_stale();

    /// How often something was written since the peer was first heard of: all but the driver's greeting.
    [[nodiscard]] std::size_t requests() const noexcept { return requests_; }

    /// Bytes that `read` gives now.
    [[nodiscard]] std::size_t readable() const noexcept { return filled_ - taken_; }
    /// Tells of the first bytes, if none are there.
    void await_bytes();
    [[nodiscard]] std::size_t read(std::span<std::byte> into) noexcept;
    /// All of it, in the end. Only when it is open and flushed.
    void write(std::span<const std::span<const std::byte>> parts);

private:
    using tcp = asio::ip::tcp;
    using socket = asio::basic_stream_socket<tcp, remote::socket_executor>;
    using resolver = asio::ip::basic_resolver<tcp, remote::socket_executor>;

    void connect(const remote::addresses& found);
    void greet();
    void opened();
    void fail(const error_code& why);
    void send_rest();
    template <class Use>
    void with_stream(Use use);

    const std::function<void()> changed_;
    resolver resolver_;
    socket socket_;
    std::optional<asio::ssl::stream<socket&>> secured_;
    std::string server_name_;
    bool open_ = false;
    /// The TLS handshake has begun, and has not succeeded.
    bool greets_ = false;
    bool closed_ = false;
    bool at_end_ = false;
    bool reading_ = false;
    error_code failure_;

    std::array<std::byte, std::size_t{8} * 1024> buffer_;
    std::size_t taken_ = 0;
    std::size_t filled_ = 0;
    bool heard_ = false;
    std::size_t requests_ = 0;
    std::string unsent_;
};

} // namespace colock::mongo::detail
