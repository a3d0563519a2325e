// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/operations/fence_anchor.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>

namespace colock::redis::detail {
namespace {

using namespace std::chrono_literals;

constexpr lease_clock::time_point start{1h};

struct anchored
{
    [[nodiscard]] std::string request() const
    {
        boost::redis::request made;
        anchor.push(made, script::form::digest);
        return std::string(made.payload());
    }

    settings config{options{.url = "redis://127.0.0.1"}};
    fence_anchor anchor{config};
};

} // namespace

BOOST_AUTO_TEST_SUITE(redis_fence_anchor)

BOOST_AUTO_TEST_CASE(one_in_each_interval_lifts_the_counter)
{
    anchored of;
    BOOST_TEST(of.anchor.take_turn(start));
    BOOST_TEST(!of.anchor.take_turn(start));
    BOOST_TEST(!of.anchor.take_turn(start + 999ms));
    BOOST_TEST(of.anchor.take_turn(start + 1s));
    BOOST_TEST(!of.anchor.take_turn(start + 1s));
}

BOOST_AUTO_TEST_CASE(what_a_new_connection_lifts_need_not_be_lifted_soon)
{
    anchored of;
    of.anchor.note_lifted(start);
    BOOST_TEST(!of.anchor.take_turn(start + 999ms));
    BOOST_TEST(of.anchor.take_turn(start + 1s));
}

BOOST_AUTO_TEST_CASE(it_is_lifted_above_the_highest_fence_that_was_given)
{
    anchored of;
    BOOST_TEST(of.anchor.accept(1'700'000'000'000'007));
    BOOST_TEST(of.anchor.accept(1'700'000'000'000'005));
    BOOST_TEST(of.request().find("1700000000000007") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_fence_below_the_clock_is_not_given_and_changes_nothing)
{
    anchored of;
    BOOST_TEST(of.anchor.accept(least_fence));
    BOOST_TEST(!of.anchor.accept(least_fence - 1));
    BOOST_TEST(of.request().find(std::to_string(least_fence)) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_fence_that_may_soon_overflow_is_not_given_and_the_counter_may_be_lowered)
{
    anchored of;
    BOOST_TEST(of.anchor.accept(max_fence));
    BOOST_TEST(!of.anchor.accept(max_fence + 1));
    BOOST_TEST(of.request().find(std::to_string(max_fence)) == std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::redis::detail
