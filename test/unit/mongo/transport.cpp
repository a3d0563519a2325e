// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/transport.hpp"

#include "net/tls.hpp"

#include "support/certificates.hpp"
#include "support/run.hpp"
#include "support/sockets.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

using namespace colock::testing;
using asio::ip::tcp;
using colock::mongo::detail::transport;

namespace {

/// A transport and its peer.
struct pair
{
    /// \param tls if it is not null, the test has to perform the handshake of the peer
    explicit pair(asio::ssl::context* tls = nullptr)
    {
        made->open({.host = "127.0.0.1", .port = std::to_string(acceptor.local_endpoint().port()), .tls = tls});
        BOOST_TEST(!made->is_open());
        acceptor.async_accept(peer, [this](const boost::system::error_code& failed) { accepted = !failed; });
        run_until(io, [this, tls] { return accepted && (tls || changes > 0); });
        if (tls)
            return;
        BOOST_TEST(made->is_open());
        changes = 0;
    }

    void write(std::size_t size)
    {
        const std::vector<std::byte> text(size, std::byte{1});
        // The header is in several parts.
        const std::array<std::span<const std::byte>, 3> parts{
            std::span(text).first(4), std::span(text).subspan(4, size / 2), std::span(text).subspan(4 + size / 2)};
        made->write(parts);
    }
    /// Returns the reply to a request that consists of bytes with the value 1.
    static std::string make_reply()
    {
        return std::string("\x1f\0\0\0\0\0\0\0\1\1\1\1\xdd\x07\0\0\0\0\0\0\0\x0a\0\0\0\x08ok\0\1\0", 31);
    }
    [[nodiscard]] std::string read_all() const
    {
        std::string text(made->readable(), '\0');
        const auto bytes = std::as_writable_bytes(std::span(text));
        // In two pieces.
        const auto begin = made->read(bytes.first(bytes.size() / 2));
        BOOST_TEST(begin + made->read(bytes.subspan(begin)) == text.size());
        return text;
    }
    void read_by_peer(std::size_t size)
    {
        std::vector<char> all(size);
        bool read = false;
        asio::async_read(
            peer, asio::buffer(all), [&](const boost::system::error_code& failed, std::size_t) { read = !failed; });
        run_until(io, [&] { return read; });
    }

    asio::io_context io;
    tcp::acceptor acceptor{io, {asio::ip::address_v4::loopback(), 0}};
    tcp::socket peer{io};
    bool accepted = false;
    int changes = 0;
    std::shared_ptr<transport> made = std::make_shared<transport>(io.get_executor(), [this] { ++changes; });
};

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_transport)

BOOST_AUTO_TEST_CASE(connect_to_a_closed_port_is_refused)
{
    asio::io_context io;
    int changes = 0;
    const auto made = std::make_shared<transport>(io.get_executor(), [&] { ++changes; });
    made->open({.host = "127.0.0.1", .port = std::to_string(free_port())});
    run_until(io, [&] { return changes > 0; });
    BOOST_TEST(made->failure() == asio::error::connection_refused);
    BOOST_TEST(!made->is_open());
}

BOOST_AUTO_TEST_CASE(large_write_is_completed_in_the_background)
{
    pair test;
    // These are more bytes than the kernel's buffers of both sockets can hold.
    constexpr std::size_t much = std::size_t{64} * 1024 * 1024;
    test.write(much);
    BOOST_TEST(!test.made->is_flushed());
    BOOST_TEST(test.changes == 0);
    test.read_by_peer(much);
    run_until(test.io, [&] { return test.changes > 0; });
    BOOST_TEST(test.made->is_flushed());
}

BOOST_AUTO_TEST_CASE(reply_can_be_read_after_the_end_of_the_connection)
{
    pair test;
    test.write(100);
    test.read_by_peer(100);
    test.made->await_bytes();
    asio::write(test.peer, asio::buffer(pair::make_reply()));
    run_until(test.io, [&] { return test.changes == 1; });
    // Bytes are left, so no read is started.
    test.made->await_bytes();
    test.peer.close();
    BOOST_TEST(test.read_all() == pair::make_reply());
    test.made->await_bytes();
    run_until(test.io, [&] { return test.changes == 2; });
    BOOST_TEST(test.made->at_end());
    BOOST_TEST(!test.made->failure());
    BOOST_TEST(test.made->is_stale());
}

BOOST_AUTO_TEST_CASE(reply_is_readable_when_its_last_byte_has_arrived)
{
    pair test;
    const auto reply = pair::make_reply();
    for (int i = 0; i < 2; ++i) {
        test.write(100);
        test.made->await_bytes();
        for (const char each : reply) {
            BOOST_TEST(test.made->readable() == 0U);
            asio::write(test.peer, asio::buffer(&each, 1));
            run_ready(test.io);
        }
        run_until(test.io, [&] { return test.made->readable() > 0; });
        BOOST_TEST(test.changes == i + 1);
        BOOST_TEST(test.read_all() == reply);
        BOOST_TEST(!test.made->is_stale());
    }
}

BOOST_AUTO_TEST_CASE(invalid_reply_is_a_failure_and_cannot_be_read)
{
    const auto reply = pair::make_reply();
    auto to_another = reply;
    to_another[8] = '\2';
    for (const auto& text : {to_another, reply + '\0', std::string("HTTP/1.1 400 Bad Request\r\n")}) {
        pair test;
        test.write(100);
        test.made->await_bytes();
        asio::write(test.peer, asio::buffer(text));
        run_until(test.io, [&] { return test.changes > 0; });
        BOOST_TEST((test.made->failure() == boost::system::errc::protocol_error), test.made->failure().message());
        BOOST_TEST(!test.made->is_open());
        BOOST_TEST(test.made->readable() == 0U);
    }
}

BOOST_AUTO_TEST_CASE(reply_over_tls_is_validated)
{
    const certificates known;
    asio::ssl::context peer_context(asio::ssl::context::tls_server);
    peer_context.use_certificate_chain_file(known.file("right.pem"));
    peer_context.use_private_key_file(known.file("right.key"), asio::ssl::context::pem);
    colock::remote::tls_material trusted(colock::tls_options{.ca_file = known.file("ca.pem")});
    auto context = trusted.share();
    auto to_another = pair::make_reply();
    to_another[8] = '\2';
    for (const auto& [reply, is_valid] : {std::pair(pair::make_reply(), true), {to_another, false}}) {
        pair test(&context);
        asio::ssl::stream<tcp::socket&> peer(test.peer, peer_context);
        bool is_received = false;
        std::array<char, 100> request{};
        peer.async_handshake(asio::ssl::stream_base::server, [&](const boost::system::error_code& failed) {
            BOOST_TEST(!failed, failed.message());
            asio::async_read(peer, asio::buffer(request),
                [&](const boost::system::error_code& lost, std::size_t) { is_received = !lost; });
        });
        run_until(test.io, [&] { return test.made->is_open(); });
        test.write(request.size());
        run_until(test.io, [&] { return is_received && test.made->is_flushed(); });
        test.changes = 0;
        test.made->await_bytes();
        // In two records.
        asio::write(peer, asio::buffer(reply, 10));
        run_ready(test.io);
        BOOST_TEST(test.changes == 0);
        asio::write(peer, asio::buffer(reply) + 10);
        run_until(test.io, [&] { return test.changes > 0; });
        BOOST_TEST(test.made->is_open() == is_valid);
        BOOST_TEST((test.made->failure() == boost::system::errc::protocol_error) == !is_valid);
        BOOST_TEST(test.read_all() == (is_valid ? reply : ""));
    }
}

BOOST_AUTO_TEST_CASE(bytes_without_a_request_prevent_the_next_request)
{
    pair test;
    test.made->await_bytes();
    asio::write(test.peer, asio::buffer(pair::make_reply()));
    run_until(test.io, [&] { return test.changes == 1; });
    BOOST_TEST(test.made->readable() == 0U);
    BOOST_TEST(test.made->is_stale());
    test.write(100);
    BOOST_TEST((test.made->failure() == boost::system::errc::protocol_error));
    BOOST_TEST(test.peer.available() == 0U);
}

BOOST_AUTO_TEST_CASE(end_or_unexpected_bytes_make_an_idle_connection_stale)
{
    pair ended;
    BOOST_TEST(!ended.made->is_stale());
    ended.peer.close();
    run_until(ended.io, [&] { return ended.made->is_stale(); });
    pair unexpected;
    asio::write(unexpected.peer, asio::buffer("x", 1));
    run_until(unexpected.io, [&] { return unexpected.made->is_stale(); });
    BOOST_TEST(unexpected.changes == 0);
}

BOOST_AUTO_TEST_CASE(closed_transport_does_not_call_its_handler)
{
    pair test;
    test.made->await_bytes();
    test.made->close();
    run_ready(test.io);
    BOOST_TEST(test.changes == 0);
    BOOST_TEST(!test.made->is_open());
    BOOST_TEST(test.made.use_count() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
