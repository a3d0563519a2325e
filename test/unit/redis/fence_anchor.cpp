// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/scripts/fence_anchor.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace colock::inline v0::redis::detail {
namespace {

using namespace std::chrono_literals;

constexpr lease_clock::time_point start{1h};

struct anchor_fixture
{
    [[nodiscard]] std::string request() const
    {
        boost::redis::request request;
        anchor.push(request, script::form::digest, "{colock}#fence", 0);
        return std::string(request.payload());
    }

    fence_anchor anchor;
};

} // namespace

BOOST_AUTO_TEST_SUITE(redis_fence_anchor)

BOOST_AUTO_TEST_CASE(counter_is_raised_once_per_interval)
{
    anchor_fixture f;
    BOOST_TEST(f.anchor.is_due(std::nullopt, start));
    BOOST_TEST(!f.anchor.is_due(std::nullopt, start));
    BOOST_TEST(!f.anchor.is_due(std::nullopt, start + 999ms));
    BOOST_TEST(f.anchor.is_due(std::nullopt, start + 1s));
    BOOST_TEST(!f.anchor.is_due(std::nullopt, start + 1s));
}

BOOST_AUTO_TEST_CASE(raise_by_new_connection_starts_an_interval)
{
    anchor_fixture f;
    f.anchor.on_connected(start);
    BOOST_TEST(!f.anchor.is_due(std::nullopt, start + 999ms));
    BOOST_TEST(f.anchor.is_due(std::nullopt, start + 1s));
}

BOOST_AUTO_TEST_CASE(counter_of_a_slot_is_raised_once_per_connection)
{
    anchor_fixture f;
    BOOST_TEST(f.anchor.is_due(slot_number{7}, start));
    BOOST_TEST(!f.anchor.is_due(slot_number{7}, start + 1h));
    BOOST_TEST(f.anchor.is_due(slot_number{8}, start));
    f.anchor.forget(7);
    BOOST_TEST(f.anchor.is_due(slot_number{7}, start));
    BOOST_TEST(!f.anchor.is_due(slot_number{8}, start));
    f.anchor.on_connected(start);
    BOOST_TEST(f.anchor.is_due(slot_number{7}, start));
}

BOOST_AUTO_TEST_CASE(whole_script_is_sent_until_the_node_has_executed_it)
{
    fence_anchor anchor;
    BOOST_TEST((anchor.form() == script::form::whole));
    anchor.note_answer(true);
    BOOST_TEST((anchor.form() == script::form::digest));
    anchor.note_answer(false);
    BOOST_TEST((anchor.form() == script::form::whole));
    anchor.note_answer(true);
    anchor.on_connected(start);
    BOOST_TEST((anchor.form() == script::form::whole));
}

BOOST_AUTO_TEST_CASE(nodes_share_the_highest_fence)
{
    anchor_fixture f;
    fence_anchor other;
    f.anchor.share_highest(other);
    BOOST_TEST(other.accept(1'700'000'000'000'007));
    BOOST_TEST(f.request().find("1700000000000007") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(counter_is_raised_to_the_highest_granted_fence)
{
    anchor_fixture f;
    BOOST_TEST(f.anchor.accept(1'700'000'000'000'007));
    BOOST_TEST(f.anchor.accept(1'700'000'000'000'005));
    BOOST_TEST(f.request().find("1700000000000007") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(fence_below_minimum_is_rejected)
{
    anchor_fixture f;
    BOOST_TEST(f.anchor.accept(min_fence));
    BOOST_TEST(!f.anchor.accept(min_fence - 1));
    BOOST_TEST(f.request().find(std::to_string(min_fence)) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(fence_near_overflow_is_rejected_and_counter_is_not_raised)
{
    anchor_fixture f;
    BOOST_TEST(f.anchor.accept(max_fence));
    BOOST_TEST(!f.anchor.accept(max_fence + 1));
    BOOST_TEST(f.request().find(std::to_string(max_fence)) == std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::inline v0::redis::detail
