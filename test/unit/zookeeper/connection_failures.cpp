// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/driver/connection_failure.hpp"

#include <boost/asio/error.hpp>
#include <boost/test/unit_test.hpp>

#include <string>

using colock::zookeeper::detail::connection_failure;
using colock::zookeeper::detail::read_connection_failure;
namespace causes = boost::asio::error;

BOOST_AUTO_TEST_SUITE(zookeeper_connection_failures_in_the_log)

BOOST_AUTO_TEST_CASE(server_and_cause_are_read_from_a_line)
{
    const auto line = [](const std::string& rest) {
        return "2026-01-02 03:04:05,678:9(0x7f0):ZOO_ERROR@handle_socket_error_msg@2459: " + rest;
    };
    const auto refused = read_connection_failure(
        line("Socket [127.0.0.1:1] zk retcode=-4, errno=111(Connection refused): server refused it"));
    BOOST_TEST_REQUIRE(refused.has_value());
    BOOST_TEST(refused->text == "127.0.0.1:1: Connection refused");
    BOOST_TEST((refused->cause == causes::connection_refused));
    const auto mute = read_connection_failure(
        line("Socket ::1:2181 zk retcode=-7, errno=110(Connection timed out): connection timed out"));
    BOOST_TEST_REQUIRE(mute.has_value());
    BOOST_TEST(mute->text == "::1:2181: no answer in time");
    BOOST_TEST((mute->cause == causes::timed_out));
    const auto ended = read_connection_failure(
        line("Socket [h:1] zk retcode=-4, errno=112(Host is down): failed while receiving a response"));
    BOOST_TEST_REQUIRE(ended.has_value());
    BOOST_TEST(ended->text == "h:1: the server closed the connection");
    BOOST_TEST((ended->cause == causes::eof));
    const auto cut = read_connection_failure(line("Socket [h:1] zk retcode=-4, errno=112(Host is down): failed"), true);
    BOOST_TEST_REQUIRE(cut.has_value());
    BOOST_TEST((cut->cause == causes::timed_out));
}

BOOST_AUTO_TEST_CASE(line_without_a_cause_has_none)
{
    for (const auto* const text : {"", "Socket [h:1] zk retcode=-4", "errno=111(Connection refused)",
             "Socket [h:1] zk retcode=-4, errno=0(Success): odd", "Socket [h:1] zk retcode=-4, errno=x"})
        BOOST_TEST(!read_connection_failure(text).has_value(), text);
    // The session reports this text until a line names a cause.
    BOOST_TEST(connection_failure().text == "no server was reached");
}

BOOST_AUTO_TEST_SUITE_END()
