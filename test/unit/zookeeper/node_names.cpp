// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/layout/node_names.hpp"

#include "zookeeper/session/servers.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

using namespace colock::zookeeper::detail;
namespace asio = boost::asio;

namespace {

const std::string id = "0123456789abcdef0123456789abcdef";

void check_order(std::vector<std::int32_t> numbers)
{
    for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
        BOOST_TEST(is_before({role::exclusive, numbers[i]}, {role::exclusive, numbers[i + 1]}));
        BOOST_TEST(!is_before({role::exclusive, numbers[i + 1]}, {role::exclusive, numbers[i]}));
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(zookeeper_node_names)

BOOST_AUTO_TEST_CASE(nodes_of_the_standard_layout_are_parsed)
{
    BOOST_TEST((parse_node(layout::standard, id + "-x-0000000012") == place{role::exclusive, 12}));
    BOOST_TEST((parse_node(layout::standard, id + "-s-0000000012") == place{role::shared, 12}));
    BOOST_TEST((parse_node(layout::standard, node_prefix(layout::standard, id, role::shared) + "0000000003") ==
                place{role::shared, 3}));
}

BOOST_AUTO_TEST_CASE(negative_numbers_are_parsed)
{
    BOOST_TEST((parse_node(layout::standard, id + "-x--000000001") == place{role::exclusive, -1}));
    BOOST_TEST((parse_node(layout::standard, id + "-x--2147483648") ==
                place{role::exclusive, std::numeric_limits<std::int32_t>::min()}));
    BOOST_TEST((parse_node(layout::standard, id + "-x-2147483647") ==
                place{role::exclusive, std::numeric_limits<std::int32_t>::max()}));
}

BOOST_AUTO_TEST_CASE(foreign_names_are_not_parsed)
{
    for (const auto& name : {std::string(), id, id + "-x-", id + "-y-0000000012", id + "-x-000000001z",
             id + "-x-2147483648", id.substr(1) + "-x-0000000012", "_c_" + id + "-lock-0000000012",
             id + "x-x-0000000012", std::string(32, 'G') + "-x-0000000012"})
        BOOST_TEST(!parse_node(layout::standard, name), name);
}

BOOST_AUTO_TEST_CASE(names_of_curators_nodes_are_made_and_parsed)
{
    const std::string uuid = "_c_01234567-89ab-cdef-0123-456789abcdef";
    BOOST_TEST(node_prefix(layout::curator_mutex, id, role::exclusive) == uuid + "-lock-");
    BOOST_TEST(node_prefix(layout::curator_read_write, id, role::exclusive) == uuid + "-__WRIT__");
    BOOST_TEST(node_prefix(layout::curator_read_write, id, role::shared) == uuid + "-__READ__");
    BOOST_TEST((parse_node(layout::curator_mutex, uuid + "-lock-0000000007") == place{role::exclusive, 7}));
    BOOST_TEST((parse_node(layout::curator_read_write, uuid + "-__WRIT__0000000007") == place{role::exclusive, 7}));
    BOOST_TEST((parse_node(layout::curator_read_write, uuid + "-__READ__0000000007") == place{role::shared, 7}));
    BOOST_TEST((parse_node(layout::curator_mutex, "a-lock-b-lock-0000000007") == place{role::exclusive, 7}));
    BOOST_TEST(!parse_node(layout::curator_read_write, uuid + "-lock-0000000007"));
    BOOST_TEST(!parse_node(layout::curator_mutex, id + "-x-0000000007"));
}

BOOST_AUTO_TEST_CASE(names_of_kazoos_nodes_are_parsed)
{
    BOOST_TEST((parse_node(layout::curator_mutex, id + "__lock__0000000007") == place{role::exclusive, 7}));
}

BOOST_AUTO_TEST_CASE(nodes_stay_in_order_of_creation_when_the_numbers_overflow)
{
    constexpr auto max_number = std::numeric_limits<std::int32_t>::max();
    constexpr auto min_number = std::numeric_limits<std::int32_t>::min();
    check_order({0, 1, 2, 9, 10, 11});
    check_order({max_number - 1, max_number, min_number, min_number + 1});
    check_order({-2, -1, 0, 1});
}

BOOST_AUTO_TEST_CASE(write_node_is_ahead_of_the_read_node_with_the_same_number)
{
    BOOST_TEST(is_before({role::exclusive, 4}, {role::shared, 4}));
    BOOST_TEST(!is_before({role::shared, 4}, {role::exclusive, 4}));
    BOOST_TEST(!is_before({role::shared, 4}, {role::shared, 4}));
}

// After a failure the C client advances by two entries. In a list of even length it would never reach half of them.
BOOST_AUTO_TEST_CASE(server_list_of_an_even_number_of_servers_repeats_the_first_one)
{
    const auto at = [](const char* address) { return asio::ip::tcp::endpoint(asio::ip::make_address(address), 2181); };
    BOOST_TEST(server_list({}).empty());
    BOOST_TEST(server_list({at("10.0.0.1")}) == "10.0.0.1:2181");
    BOOST_TEST(server_list({at("10.0.0.1"), at("::1")}) == "10.0.0.1:2181,::1:2181,10.0.0.1:2181");
    BOOST_TEST(
        server_list({at("10.0.0.1"), at("10.0.0.2"), at("10.0.0.3")}) == "10.0.0.1:2181,10.0.0.2:2181,10.0.0.3:2181");
}

BOOST_AUTO_TEST_SUITE_END()
