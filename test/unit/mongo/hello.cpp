// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongo/driver/hello.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace colock::mongo::detail;
using colock::remote::endpoint;

namespace {

hello of(const std::string& reply)
{
    return hello(document::from_json(reply));
}

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_hello)

BOOST_AUTO_TEST_CASE(hello_describes_a_primary)
{
    const auto parsed = of(R"({"isWritablePrimary": true, "setName": "rs", "maxWireVersion": 21, "primary": "a:1",
        "hosts": ["b", "[::1]:3"], "localTime": {"$date": {"$numberLong": "1700000000123"}}})");
    BOOST_TEST(parsed.writable);
    BOOST_TEST(parsed.identity.set == "rs");
    BOOST_TEST(parsed.identity.max_wire_version == 21);
    BOOST_TEST(parsed.local_time == 1'700'000'000'123);
    BOOST_TEST((parsed.members == std::vector<endpoint>{{"a", "1"}, {"b", "27017"}, {"::1", "3"}}));
}

BOOST_AUTO_TEST_CASE(hello_state_describes_a_server_without_writes)
{
    BOOST_TEST(of(R"({"isWritablePrimary": false, "secondary": true})").state == "a secondary");
    BOOST_TEST(of(R"({"arbiterOnly": true})").state == "an arbiter");
    BOOST_TEST(of(R"({"isreplicaset": true})").state == hello().state);
    BOOST_TEST(!hello().state.empty());
}

BOOST_AUTO_TEST_CASE(hello_field_of_another_type_is_ignored)
{
    const auto parsed = of(R"({"isWritablePrimary": 1, "setName": 7, "maxWireVersion": "9", "primary": ["a"],
        "hosts": {"0": "b"}, "localTime": 3, "secondary": "yes"})");
    BOOST_TEST(!parsed.writable);
    BOOST_TEST(parsed.identity.set.empty());
    BOOST_TEST(parsed.identity.max_wire_version == 0);
    BOOST_TEST(parsed.local_time == 0);
    BOOST_TEST(parsed.state == hello().state);
    BOOST_TEST(parsed.members.empty());
    BOOST_TEST(
        of(R"({"hosts": ["", ":1", "a:0", "a:b", "]:[x", 7, "u:p@c:3", "d,e"], "primary": ""})").members.size() <= 3u);
}

BOOST_AUTO_TEST_CASE(hello_time_that_no_clock_shows_is_ignored)
{
    for (const auto* const time : {"9223372036854775807", "-9223372036854775808", "-1", "253402300800000"})
        BOOST_TEST(
            of(R"({"localTime": {"$date": {"$numberLong": ")" + std::string(time) + "\"}}}").local_time == 0, time);
}

BOOST_AUTO_TEST_SUITE_END()
