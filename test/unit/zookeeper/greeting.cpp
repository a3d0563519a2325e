// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/driver/greeting.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

namespace colock::inline v0::zookeeper::detail {

static std::ostream& operator<<(std::ostream& to, greeting what)
{
    return to << (what == greeting::incomplete ? "incomplete" : what == greeting::valid ? "valid" : "invalid");
}

} // namespace colock::inline v0::zookeeper::detail

using namespace colock::zookeeper::detail;
using namespace std::string_literals;

namespace {

greeting check(const std::string& received, bool has_session = false)
{
    return check_greeting(std::as_bytes(std::span(received)), has_session);
}

/// A greeting with a timeout of 10 s, for session 1.
std::string server_greeting()
{
    return "\0\0\0\x25\0\0\0\0\0\0\x27\x10\0\0\0\0\0\0\0\x01\0\0\0\x10"s + std::string(16, 'p') + "\0"s;
}

std::string with(std::size_t at, std::string_view bytes)
{
    return server_greeting().replace(at, bytes.size(), bytes);
}

} // namespace

BOOST_AUTO_TEST_SUITE(zookeeper_greetings)

BOOST_AUTO_TEST_CASE(greeting_in_pieces_is_incomplete_until_it_is_whole)
{
    const auto whole = server_greeting();
    BOOST_TEST_REQUIRE(whole.size() == max_greeting_size);
    for (std::size_t received = 0; received < whole.size(); ++received)
        BOOST_TEST(check(whole.substr(0, received)) == greeting::incomplete, received);
    BOOST_TEST(check(whole) == greeting::valid);
    // A greeting of a server before version 3.4.
    const auto shorter = with(3, "\x24").substr(0, min_greeting_size);
    BOOST_TEST(check(shorter.substr(0, 39)) == greeting::incomplete);
    BOOST_TEST(check(shorter) == greeting::valid);
}

BOOST_AUTO_TEST_CASE(malformed_greeting_is_invalid_from_the_first_wrong_byte)
{
    BOOST_TEST(check("H") == greeting::invalid);
    BOOST_TEST(check("+OK\r\n") == greeting::invalid);
    BOOST_TEST(check("\0\0\0\0"s) == greeting::invalid);
    BOOST_TEST(check("\0\0\0\x26"s) == greeting::invalid);
    BOOST_TEST(check("\0\0\x01"s) == greeting::invalid);
    BOOST_TEST(check(with(7, "\x01").substr(0, 8)) == greeting::invalid);
    BOOST_TEST(check(with(20, "\x7f").substr(0, 21)) == greeting::invalid);
    BOOST_TEST(check(with(23, "\x11")) == greeting::invalid);
    BOOST_TEST(check(std::string(max_greeting_size, '\0')) == greeting::invalid);
}

BOOST_AUTO_TEST_CASE(greeting_has_a_session_and_a_timeout_or_neither)
{
    constexpr std::string_view nothing("\0\0\0\0\0\0\0\0", 8);
    const auto over = with(8, nothing.substr(0, 4)).replace(12, 8, nothing);
    BOOST_TEST(check(over, true) == greeting::valid);
    BOOST_TEST(check(over, false) == greeting::invalid);
    BOOST_TEST(check(with(8, nothing.substr(0, 4)), true) == greeting::invalid);
    BOOST_TEST(check(with(12, nothing), true) == greeting::invalid);
    BOOST_TEST(check(with(8, "\xff\xff\xff\xff"), true) == greeting::invalid);
}

/// To find a server that is not read-only, the driver would use calls that block.
BOOST_AUTO_TEST_CASE(read_only_server_is_rejected)
{
    BOOST_TEST(check(with(40, "\x01")) == greeting::invalid);
}

BOOST_AUTO_TEST_SUITE_END()
