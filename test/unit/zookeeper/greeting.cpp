// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/driver/greeting.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

namespace colock::zookeeper::detail {

static std::ostream& operator<<(std::ostream& to, greeting what)
{
    return to << (what == greeting::part ? "part" : what == greeting::sound ? "sound" : "strange");
}

} // namespace colock::zookeeper::detail

using namespace colock::zookeeper::detail;
using namespace std::string_literals;

namespace {

greeting judge(const std::string& came, bool has_session = false)
{
    return judge_greeting(std::as_bytes(std::span(came)), has_session);
}

/// Of 10 s, for session 1.
std::string of_server()
{
    return "\0\0\0\x25\0\0\0\0\0\0\x27\x10\0\0\0\0\0\0\0\x01\0\0\0\x10"s + std::string(16, 'p') + "\0"s;
}

std::string with(std::size_t at, std::string_view bytes)
{
    return of_server().replace(at, bytes.size(), bytes);
}

} // namespace

BOOST_AUTO_TEST_SUITE(zookeeper_greetings)

BOOST_AUTO_TEST_CASE(one_that_comes_in_pieces_is_judged_as_a_whole)
{
    const auto whole = of_server();
    BOOST_TEST_REQUIRE(whole.size() == longest_greeting);
    for (std::size_t came = 0; came < whole.size(); ++came)
        BOOST_TEST(judge(whole.substr(0, came)) == greeting::part, came);
    BOOST_TEST(judge(whole) == greeting::sound);
    // Of a server before 3.4.
    const auto shorter = with(3, "\x24").substr(0, shortest_greeting);
    BOOST_TEST(judge(shorter.substr(0, 39)) == greeting::part);
    BOOST_TEST(judge(shorter) == greeting::sound);
}

BOOST_AUTO_TEST_CASE(what_no_server_says_is_strange_as_soon_as_it_shows)
{
    BOOST_TEST(judge("H") == greeting::strange);
    BOOST_TEST(judge("+OK\r\n") == greeting::strange);
    BOOST_TEST(judge("\0\0\0\0"s) == greeting::strange);
    BOOST_TEST(judge("\0\0\0\x26"s) == greeting::strange);
    BOOST_TEST(judge("\0\0\x01"s) == greeting::strange);
    BOOST_TEST(judge(with(7, "\x01").substr(0, 8)) == greeting::strange);
    BOOST_TEST(judge(with(20, "\x7f").substr(0, 21)) == greeting::strange);
    BOOST_TEST(judge(with(23, "\x11")) == greeting::strange);
    BOOST_TEST(judge(std::string(longest_greeting, '\0')) == greeting::strange);
}

BOOST_AUTO_TEST_CASE(a_session_has_a_number_and_a_timeout_or_is_over)
{
    constexpr std::string_view nothing("\0\0\0\0\0\0\0\0", 8);
    const auto over = with(8, nothing.substr(0, 4)).replace(12, 8, nothing);
    BOOST_TEST(judge(over, true) == greeting::sound);
    BOOST_TEST(judge(over, false) == greeting::strange);
    BOOST_TEST(judge(with(8, nothing.substr(0, 4)), true) == greeting::strange);
    BOOST_TEST(judge(with(12, nothing), true) == greeting::strange);
    BOOST_TEST(judge(with(8, "\xff\xff\xff\xff"), true) == greeting::strange);
}

/// For the others the driver would look with calls that block.
BOOST_AUTO_TEST_CASE(one_that_only_reads_is_none_of_ours)
{
    BOOST_TEST(judge(with(40, "\x01")) == greeting::strange);
}

BOOST_AUTO_TEST_SUITE_END()
