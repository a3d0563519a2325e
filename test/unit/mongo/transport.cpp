// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/transport.hpp"

#include "support/run.hpp"
#include "support/sockets.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
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
    pair()
    {
        made->open({.host = "127.0.0.1", .port = std::to_string(acceptor.local_endpoint().port())});
        BOOST_TEST(!made->is_open());
        acceptor.async_accept(peer, [this](const boost::system::error_code& failed) { accepted = !failed; });
        run_until(io, [this] { return accepted && changes > 0; });
        BOOST_TEST(made->is_open());
        changes = 0;
    }

    void write(std::size_t size)
    {
        const std::vector<std::byte> text(size, std::byte{1});
        const std::array<std::span<const std::byte>, 2> parts{
            std::span(text).first(size / 2), std::span(text).subspan(size / 2)};
        made->write(parts);
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

BOOST_AUTO_TEST_CASE(bytes_can_be_read_after_the_end_of_the_connection)
{
    pair test;
    test.made->await_bytes();
    asio::write(test.peer, asio::buffer("abc", 3));
    run_until(test.io, [&] { return test.changes == 1; });
    BOOST_TEST(test.made->readable() == 3u);
    std::array<std::byte, 2> two{};
    BOOST_TEST(test.made->read(two) == 2u);
    BOOST_TEST((two[1] == std::byte{'b'}));
    // One byte is left, so no read is started.
    test.made->await_bytes();
    test.peer.close();
    BOOST_TEST(test.made->read(two) == 1u);
    test.made->await_bytes();
    run_until(test.io, [&] { return test.changes == 2; });
    BOOST_TEST(test.made->at_end());
    BOOST_TEST(!test.made->failure());
    BOOST_TEST(test.made->is_stale());
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
