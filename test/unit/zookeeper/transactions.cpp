// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/recipe/transactions.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <string_view>
#include <vector>

using namespace colock::zookeeper::detail;
using batches = std::vector<std::vector<std::size_t>>;

namespace {

/// The keys have to outlive the result.
std::vector<batch_item> for_keys(const std::vector<std::string_view>& keys)
{
    std::vector<batch_item> ready;
    for (const auto key : keys)
        ready.push_back({.parent = key, .bytes = 100});
    return ready;
}

std::vector<std::size_t> sizes(const batches& of)
{
    std::vector<std::size_t> found;
    for (const auto& each : of)
        found.push_back(each.size());
    return found;
}

} // namespace

BOOST_AUTO_TEST_SUITE(zookeeper_transactions)

BOOST_AUTO_TEST_CASE(empty_list_and_single_item_are_batched)
{
    BOOST_TEST(make_batches({}).empty());
    BOOST_TEST((make_batches(for_keys({"a"})) == batches{{0}}));
}

BOOST_AUTO_TEST_CASE(batch_has_eight_items_in_order)
{
    std::vector<std::string> keys;
    for (int i = 0; i < 20; ++i)
        keys.push_back(std::to_string(i));
    const auto split = make_batches(for_keys({keys.begin(), keys.end()}));
    BOOST_TEST((sizes(split) == std::vector<std::size_t>{8, 8, 4}));
    BOOST_TEST(split[1].front() == 8u);
}

BOOST_AUTO_TEST_CASE(batch_creates_at_most_once_per_parent)
{
    BOOST_TEST((make_batches(for_keys({"a", "b", "a", "b"})) == batches{{0, 1}, {2, 3}}));
    auto removals = for_keys({"a", "a", "a"});
    removals[1].creates = removals[2].creates = false;
    BOOST_TEST((make_batches(removals) == batches{{0, 1, 2}}));
}

BOOST_AUTO_TEST_CASE(item_marked_alone_is_sent_alone)
{
    auto ready = for_keys({"a", "b", "c", "d"});
    ready[1].is_alone = true;
    BOOST_TEST((make_batches(ready) == batches{{0}, {1}, {2, 3}}));
}

BOOST_AUTO_TEST_CASE(batch_is_limited_in_operations_and_bytes)
{
    auto ready = for_keys({"a", "b", "c", "d"});
    for (auto& each : ready)
        each.operations = 2;
    BOOST_TEST((make_batches(ready, {.max_operations = 4}) == batches{{0, 1}, {2, 3}}));
    BOOST_TEST((make_batches(ready, {.max_bytes = 299}) == batches{{0, 1}, {2, 3}}));
    // An item that exceeds the limit is sent alone.
    BOOST_TEST((make_batches(ready, {.max_bytes = 10}) == batches{{0}, {1}, {2}, {3}}));
}

BOOST_AUTO_TEST_CASE(failed_transaction_is_not_done_and_has_a_failed_member)
{
    BOOST_TEST(outcome_of(0, std::vector{0, 0, 0}).done);
    // Codes of a real server: the members before the failed member report success.
    const auto failed = outcome_of(-101, std::vector{0, 0, -101, -2, -2});
    BOOST_TEST(!failed.done);
    BOOST_TEST((failed.failed_member == 2u));
}

BOOST_AUTO_TEST_CASE(equal_codes_name_no_failed_member)
{
    const auto lost = outcome_of(-4, std::vector{-4, -4, -4});
    BOOST_TEST(!lost.done);
    BOOST_TEST(!lost.failed_member.has_value());
    BOOST_TEST(!outcome_of(-4, std::vector{0, 0}).failed_member.has_value());
    BOOST_TEST((outcome_of(-101, std::vector{-101}).failed_member == 0u));
}

BOOST_AUTO_TEST_SUITE_END()
