// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/recipe/recent_lists.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::zookeeper::detail;
using namespace std::chrono_literals;

namespace {

constexpr lease_clock::time_point start_time{std::chrono::hours(100)};

reply listed(std::vector<std::string> names, std::int64_t transaction)
{
    return {.outcome = status::ok,
        .stat = {.children_modified_in = transaction},
        .children = std::make_shared<folder_children>(std::move(names))};
}

} // namespace

BOOST_AUTO_TEST_SUITE(zookeeper_recent_lists)

BOOST_AUTO_TEST_CASE(the_last_list_of_each_folder_is_found)
{
    recent_lists lists;
    lists.note("/a", listed({"1", "9"}, 5), start_time);
    lists.note("/b", listed({"2", "9"}, 6), start_time);
    lists.note("/a", listed({"3", "9"}, 7), start_time);
    BOOST_TEST((lists.find("/a", 5, start_time)->names() == std::vector<std::string>{"3", "9"}));
    BOOST_TEST((lists.find("/b", 5, start_time)->names() == std::vector<std::string>{"2", "9"}));
    BOOST_TEST(!lists.find("/c", 5, start_time));
}

BOOST_AUTO_TEST_CASE(list_that_is_older_than_the_node_is_not_found)
{
    recent_lists lists;
    lists.note("/a", listed({"1", "9"}, 5), start_time);
    BOOST_TEST(lists.find("/a", 5, start_time));
    BOOST_TEST(!lists.find("/a", 6, start_time));
}

BOOST_AUTO_TEST_CASE(failed_list_does_not_replace_an_earlier_one)
{
    recent_lists lists;
    lists.note("/a", listed({"1", "9"}, 5), start_time);
    lists.note("/a", {.outcome = status::unanswered}, start_time);
    BOOST_TEST(lists.find("/a", 5, start_time));
}

BOOST_AUTO_TEST_CASE(list_of_a_single_node_is_not_kept)
{
    recent_lists lists;
    lists.note("/a", listed({"1"}, 5), start_time);
    BOOST_TEST(!lists.find("/a", 5, start_time));
}

BOOST_AUTO_TEST_CASE(old_list_is_not_found)
{
    recent_lists lists;
    lists.note("/a", listed({"1", "9"}, 5), start_time);
    BOOST_TEST(lists.find("/a", 5, start_time + 999ms));
    BOOST_TEST(!lists.find("/a", 5, start_time + 1s));
}

BOOST_AUTO_TEST_CASE(only_old_lists_are_forgotten)
{
    recent_lists lists;
    const auto one = listed({"1", "9"}, 5);
    const auto other = listed({"2", "9"}, 5);
    lists.note("/a", one, start_time);
    lists.note("/b", other, start_time + 1s);
    lists.forget_old(start_time + 1s);
    BOOST_TEST(one.children.use_count() == 1);
    BOOST_TEST(other.children.use_count() == 2);
    BOOST_TEST(lists.find("/b", 5, start_time + 1s));
    lists.clear();
    BOOST_TEST(!lists.find("/b", 5, start_time + 1s));
}

BOOST_AUTO_TEST_SUITE_END()
