// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/transport.hpp"

#include "net/tls.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <new>
#include <utility>

#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

namespace colock::inline v0::mongo::detail {

namespace {

constexpr std::size_t max_kept_capacity = std::size_t{64} * 1024;

/// The driver writes each field of the header as a part of its own.
message_header header_of(std::span<const std::span<const std::byte>> message) noexcept
{
    std::array<std::byte, message_header::size> bytes{};
    std::size_t count = 0;
    for (const auto& part : message) {
        const auto taken = part.first(std::min(part.size(), bytes.size() - count));
        std::ranges::copy(taken, bytes.begin() + static_cast<std::ptrdiff_t>(count));
        count += taken.size();
    }
    return message_header::read(bytes);
}

} // namespace

transport::transport(const asio::any_io_executor& strand, std::function<void()> changed)
    : changed_(std::move(changed)), resolver_(remote::socket_executor(strand)), socket_(remote::socket_executor(strand))
{
}

void transport::open(const destination& to)
{
    server_name_ = to.server_name.empty() ? to.host : to.server_name;
    if (to.tls)
        tls_stream_.emplace(socket_, *to.tls);
    resolver_.async_resolve(
        to.host, to.port, [self = shared_from_this()](const error_code& error, const remote::addresses& found) {
            if (error)
                self->fail(error);
            else if (!self->closed_)
                self->connect(found);
        });
}

void transport::connect(const remote::addresses& found)
{
    asio::async_connect(socket_, found, [self = shared_from_this()](const error_code& error, const tcp::endpoint&) {
        if (self->closed_)
            return;
        if (error) {
            self->fail(error);
            return;
        }
        error_code ignored;
        self->socket_.set_option(tcp::no_delay(true), ignored);
        self->socket_.non_blocking(true, ignored);
        if (self->tls_stream_)
            self->start_handshake();
        else
            self->opened();
    });
}

void transport::start_handshake()
{
    in_handshake_ = true;
    remote::expect_host(tls_stream_->native_handle(), server_name_);
    tls_stream_->async_handshake(asio::ssl::stream_base::client, [self = shared_from_this()](const error_code& error) {
        if (error)
            self->fail(error);
        else if (!self->closed_)
            self->opened();
    });
}

void transport::opened()
{
    in_handshake_ = false;
    open_ = true;
    changed_();
}

std::string transport::explanation() const
{
    if (!in_handshake_)
        return {};
    const auto verified = SSL_get_verify_result(const_cast<asio::ssl::stream<socket&>&>(*tls_stream_).native_handle());
    if (verified != X509_V_OK)
        return std::string(": ") + X509_verify_cert_error_string(verified);
    return " in the TLS handshake; does the server speak TLS?";
}

void transport::fail(const error_code& error)
{
    if (closed_)
        return;
    if (error == asio::error::eof || error == asio::ssl::error::stream_truncated) {
        at_end_ = true;
    } else {
        failure_ = error;
        open_ = false;
    }
    changed_();
}

bool transport::is_stale()
{
    if (!open_ || at_end_ || !received_.empty())
        return true;
    std::byte next{};
    error_code error;
    socket_.receive(asio::buffer(&next, 1), socket::message_peek, error);
    // With TLS, the peer may send messages of the TLS protocol at any time.
    return error ? error != asio::error::would_block : !tls_stream_;
}

void transport::close() noexcept
{
    closed_ = true;
    open_ = false;
    resolver_.cancel();
    error_code ignored;
    socket_.close(ignored);
}

/// OpenSSL stores errors per thread and needs a deep stack, so it is never called on a fiber.
template <class Use>
void transport::with_stream(Use use)
{
    if (!tls_stream_) {
        use(socket_);
        return;
    }
    asio::post(socket_.get_executor(), [self = shared_from_this(), use = std::move(use)]() mutable {
        if (!self->closed_)
            use(*self->tls_stream_);
    });
}

void transport::await_bytes()
{
    if (reading_ || readable() > 0 || !open_ || at_end_)
        return;
    reading_ = true;
    with_stream([self = shared_from_this()](auto& from) {
        from.async_read_some(asio::buffer(self->buffer_), [self](const error_code& error, std::size_t count) {
            self->reading_ = false;
            if (error)
                self->fail(error);
            else if (!self->closed_)
                self->received(count);
        });
    });
}

void transport::received(std::size_t count)
{
    try {
        received_.insert(received_.end(), buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(count));
    } catch (const std::bad_alloc&) {
        fail(make_error_code(boost::system::errc::not_enough_memory));
        return;
    }
    if (const auto violation = validate_received())
        fail(violation);
    else if (request_)
        await_bytes();
    else
        changed_();
}

/// Makes the reply readable if it is complete and valid. Bytes without a request are kept: they make the connection
/// stale.
error_code transport::validate_received() noexcept
{
    if (!request_ || received_.size() < message_header::size)
        return {};
    const auto header = message_header::read(std::span(received_).first<message_header::size>());
    if (const auto violation = validate_header(header, *request_))
        return violation;
    const auto length = static_cast<std::size_t>(header.length);
    if (received_.size() < length)
        return {};
    std::span<std::byte> reply(received_);
    if (reply.size() > length)
        return make_error_code(reply_violation::surplus);
    if (const auto violation = validate_body(reply))
        return violation;
    request_.reset();
    valid_ = reply;
    return {};
}

std::size_t transport::read(std::span<std::byte> into) noexcept
{
    const auto count = std::min(into.size(), readable());
    has_received_ = true;
    std::copy_n(valid_.begin(), count, into.begin());
    valid_ = valid_.subspan(count);
    if (count == 0 || !valid_.empty())
        return count;
    received_.clear();
    // A large reply is rare, so its memory is not kept.
    if (received_.capacity() > max_kept_capacity)
        received_ = {};
    return count;
}

void transport::write(std::span<const std::span<const std::byte>> parts)
{
    if (!received_.empty()) {
        failure_ = make_error_code(reply_violation::surplus);
        open_ = false;
        return;
    }
    request_ = header_of(parts);
    requests_ += has_received_ ? 1 : 0;
    std::size_t sent_size = 0;
    if (!tls_stream_) {
        std::array<asio::const_buffer, 16> gathered;
        const auto count = std::min(parts.size(), gathered.size());
        std::transform(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(count), gathered.begin(),
            [](const auto& part) { return asio::buffer(part.data(), part.size()); });
        error_code error;
        sent_size = socket_.write_some(std::span(gathered).first(count), error);
        if (error && error != asio::error::would_block && error != asio::error::try_again) {
            failure_ = error;
            open_ = false;
            return;
        }
    }
    // Copy the rest, because the caller's buffers may be gone when it can be sent.
    for (const auto& part : parts) {
        const auto passed = std::min(sent_size, part.size());
        sent_size -= passed;
        const auto rest = part.subspan(passed);
        unsent_.append(reinterpret_cast<const char*>(rest.data()), rest.size());
    }
    if (!unsent_.empty())
        send_rest();
}

void transport::send_rest()
{
    with_stream([self = shared_from_this()](auto& to) {
        asio::async_write(to, asio::buffer(self->unsent_), [self](const error_code& error, std::size_t) {
            self->unsent_.clear();
            if (error)
                self->fail(error);
            else if (!self->closed_)
                self->changed_();
        });
    });
}

} // namespace colock::inline v0::mongo::detail
