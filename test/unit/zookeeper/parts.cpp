// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/recipe/parts.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <string_view>
#include <vector>

using namespace colock::zookeeper::detail;
using parts = std::vector<std::vector<std::size_t>>;

namespace {

/// The keys have to outlive it.
std::vector<batch_item> for_keys(const std::vector<std::string_view>& keys)
{
    std::vector<batch_item> ready;
    for (const auto key : keys)
        ready.push_back({.parent = key, .bytes = 100});
    return ready;
}

std::vector<std::size_t> sizes(const parts& of)
{
    std::vector<std::size_t> found;
    for (const auto& each : of)
        found.push_back(each.size());
    return found;
}

} // namespace

BOOST_AUTO_TEST_SUITE(zookeeper_parts)

BOOST_AUTO_TEST_CASE(nothing_and_one_are_not_kept_waiting)
{
    BOOST_TEST(in_parts({}).empty());
    BOOST_TEST((in_parts(for_keys({"a"})) == parts{{0}}));
}

BOOST_AUTO_TEST_CASE(eight_go_together_in_their_order)
{
    std::vector<std::string> keys;
    for (int i = 0; i < 20; ++i)
        keys.push_back(std::to_string(i));
    const auto split = in_parts(for_keys({keys.begin(), keys.end()}));
    BOOST_TEST((sizes(split) == std::vector<std::size_t>{8, 8, 4}));
    BOOST_TEST(split[1].front() == 8u);
}

BOOST_AUTO_TEST_CASE(no_part_creates_twice_under_one_parent)
{
    BOOST_TEST((in_parts(for_keys({"a", "b", "a", "b"})) == parts{{0, 1}, {2, 3}}));
    auto removals = for_keys({"a", "a", "a"});
    removals[1].creates = removals[2].creates = false;
    BOOST_TEST((in_parts(removals) == parts{{0, 1, 2}}));
}

BOOST_AUTO_TEST_CASE(what_may_fail_by_itself_goes_by_itself)
{
    auto ready = for_keys({"a", "b", "c", "d"});
    ready[1].by_itself = true;
    BOOST_TEST((in_parts(ready) == parts{{0}, {1}, {2, 3}}));
}

BOOST_AUTO_TEST_CASE(a_part_has_its_limits_in_operations_and_bytes)
{
    auto ready = for_keys({"a", "b", "c", "d"});
    for (auto& each : ready)
        each.operations = 2;
    BOOST_TEST((in_parts(ready, {.operations = 4}) == parts{{0, 1}, {2, 3}}));
    BOOST_TEST((in_parts(ready, {.bytes = 299}) == parts{{0, 1}, {2, 3}}));
    // One that is too large for any goes alone.
    BOOST_TEST((in_parts(ready, {.bytes = 10}) == parts{{0}, {1}, {2}, {3}}));
}

BOOST_AUTO_TEST_CASE(of_a_failed_transaction_nothing_has_happened)
{
    BOOST_TEST(outcome_of(0, std::vector{0, 0, 0}).done);
    // As seen: those before the culprit report success.
    const auto failed = outcome_of(-101, std::vector{0, 0, -101, -2, -2});
    BOOST_TEST(!failed.done);
    BOOST_TEST((failed.culprit == 2u));
}

BOOST_AUTO_TEST_CASE(where_all_fail_alike_nobody_is_the_culprit)
{
    const auto lost = outcome_of(-4, std::vector{-4, -4, -4});
    BOOST_TEST(!lost.done);
    BOOST_TEST(!lost.culprit.has_value());
    BOOST_TEST(!outcome_of(-4, std::vector{0, 0}).culprit.has_value());
    BOOST_TEST((outcome_of(-101, std::vector{-101}).culprit == 0u));
}

BOOST_AUTO_TEST_SUITE_END()
