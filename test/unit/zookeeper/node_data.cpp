// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/operations/node_data.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

using namespace colock;
using namespace colock::zookeeper::detail;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(zookeeper_node_data)

BOOST_AUTO_TEST_CASE(node_data_survives_encoding_and_parsing)
{
    const owner_data owner{.owner = "me", .host = "here\n1 2", .comment = "", .group = "g"};
    const claim of(
        {.key = "k", .mode = lock_mode::shared, .max_holders = 3, .owner = std::make_shared<const owner_data>(owner)});
    const auto parsed = parse_node_data(format_node_data(of, 90s));
    BOOST_TEST_REQUIRE(parsed.has_value());
    BOOST_TEST((parsed->ttl == 90s));
    BOOST_TEST(parsed->max_holders == 3U);
    BOOST_TEST((parsed->owner.owner == owner));
    BOOST_TEST((std::chrono::milliseconds(parsed->owner.created) > 0ms));
}

BOOST_AUTO_TEST_CASE(foreign_node_data_is_not_parsed)
{
    for (const char* const text : {"", "1", "1 ", "1 2", "1 2 3", "x 2\n00000000000", "1 x\n00000000000", "1 2\n",
             "1 2\nnot a number", "192.168.0.1", "-1 2\n00000000000"})
        BOOST_TEST(!parse_node_data(text).has_value(), text);
}

BOOST_AUTO_TEST_SUITE_END()
