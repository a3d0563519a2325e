// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "net/url.hpp"

#include <colock/error.hpp>

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace colock;
using remote::endpoint;
using remote::url;

namespace {

url parse(std::string_view text)
{
    return {text, "some backend", "scheme://host"};
}

} // namespace

BOOST_AUTO_TEST_SUITE(remote_url)

BOOST_AUTO_TEST_CASE(url_is_split_into_its_parts)
{
    const auto all = parse("mongodb://me:a%40b@one,two:2,[::1]:3/db/x?w=1#y");
    BOOST_TEST(all.scheme() == "mongodb");
    BOOST_TEST(all.path() == "db/x");
    BOOST_TEST(all.parameters() == "?w=1#y");
    BOOST_TEST(all.credentials().user == "me");
    BOOST_TEST(all.credentials().password.value() == "a@b");
    BOOST_TEST((all.hosts("7") == std::vector<endpoint>{{"one", "7"}, {"two", "2"}, {"::1", "3"}}));
    BOOST_TEST(all.host_count() == 3U);
}

BOOST_AUTO_TEST_CASE(missing_parts_are_empty)
{
    const auto bare = parse("zookeeper://host");
    BOOST_TEST(bare.path().empty());
    BOOST_TEST(bare.parameters().empty());
    BOOST_TEST(bare.credentials().user.empty());
    BOOST_TEST(!bare.credentials().password.has_value());
    BOOST_TEST(parse("s://:secret@h").credentials().password.value() == "secret");
    BOOST_TEST(!parse("s://user@h").credentials().password.has_value());
    BOOST_TEST(bare.parse_number("", 9, "database") == 0);
}

BOOST_AUTO_TEST_CASE(scheme_and_host_names_are_compared_in_lower_case)
{
    const auto all = parse("MongoDB+SRV://Me:Secret@Host-A.Example,[FE80::A]:007/Db");
    BOOST_TEST(all.scheme() == "mongodb+srv");
    BOOST_TEST(all.credentials().user == "Me");
    BOOST_TEST(all.credentials().password.value() == "Secret");
    BOOST_TEST((all.hosts("1") == std::vector<endpoint>{{"host-a.example", "1"}, {"fe80::a", "7"}}));
    BOOST_TEST(all.path() == "Db");
}

BOOST_AUTO_TEST_CASE(split_by_host_makes_one_url_per_host)
{
    const auto urls = parse("x+quorum://u:p%2f@a,b:2,[::1]/3").split_by_host("x");
    const std::vector<std::string> expected{"x://u:p%2f@a/3", "x://u:p%2f@b:2/3", "x://u:p%2f@[::1]/3"};
    BOOST_TEST(urls == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(error_message_names_the_invalid_part_without_its_text)
{
    const auto refusal_of = [](const char* text) {
        try {
            const auto from = parse(text);
            static_cast<void>(from.credentials());
            static_cast<void>(from.hosts("1"));
            static_cast<void>(from.decode(from.path(), "path"));
            static_cast<void>(from.parse_number(from.path(), 9, "number"));
        } catch (const validation_error& refused) {
            BOOST_TEST(refused.backend() == "some backend");
            BOOST_TEST(refused.detail().find("secret") == std::string::npos);
            return refused.detail();
        }
        return std::string();
    };
    const std::pair<const char*, const char*> refused[] = {
        {"host:1", "has no '://' behind a scheme; write scheme://host"},
        {"s://u:secret@", "names no host"},
        {"s://u:secret@a,,b", "names no host"},
        {"s://u:secret@h:0", "port"},
        {"s://u:secret@h:65536", "port"},
        {"s://u:secret@h:1x", "port"},
        {"s://u:secret@[::1", "closing ']'"},
        {"s://u:secret@[::1]1", "behind an IPv6 address"},
        {"s://u:secret%0a@h", "the URL's password holds a control character"},
        {"s://u:secret%4@h", "the URL's password has a '%'"},
        {"s://secret%:x@h", "the URL's user has a '%'"},
        {"s://u:secret@h%00", "the URL's host holds"},
        {"s://h/%zz", "the URL's path has a '%'"},
        {"s://h1:1/secret,h2:1/secret", "write all hosts in front of one path, s://host:port,host:port/path"},
        {"s://h1/,secret", "write all hosts in front of one path"},
        {"s://u:12/secret@h", "the URL has an '@' behind its first '/'; a '/' in a user or password is written %2F"},
        {"s://u:secret@h1,u:secret@h2", "the URL has a ',' in front of its last '@'; write user and password once"},
        {"s://h1:1,u:secret@h2", "write user and password once"},
        {"s://h1, secret", "a character that no host's name has"},
        {"s://%2Fsecret.sock", "a character that no host's name has"},
        {"s://h1;secret", "a character that no host's name has"},
        {"s://[secret]:1", "something other than an IPv6 address"},
        {"s://h:-1", "port"},
        {"s://h/-0", "the URL's number is not a number from 0 to 9"},
        {"s://h/10", "the URL's number is not a number from 0 to 9"},
    };
    for (const auto& [text, why] : refused) {
        BOOST_TEST_CONTEXT(text)
        {
            BOOST_TEST(refusal_of(text).find(why) != std::string::npos, refusal_of(text));
        }
    }
    for (const auto* text : {"s://u:secret@h:65535/9", "s://u%2C:sec%2Cret@h/9", "s://u:p@secret@h_1.x-y./9",
             "s://[fe80::1%251]:1/9", "s://xn--secret/9"})
        BOOST_TEST(refusal_of(text).empty(), text);
}

BOOST_AUTO_TEST_CASE(endpoint_is_formatted_as_in_a_url)
{
    BOOST_TEST(to_text(endpoint{"host", "1"}) == "host:1");
    BOOST_TEST(to_text(endpoint{"::1", "2"}) == "[::1]:2");
}

BOOST_AUTO_TEST_SUITE_END()
