// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/scripts/fence_anchor.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
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
        anchor.push(request, script::form::digest);
        return std::string(request.payload());
    }

    settings config{options{.url = "redis://127.0.0.1"}};
    fence_anchor anchor{config};
};

} // namespace

BOOST_AUTO_TEST_SUITE(redis_fence_anchor)

BOOST_AUTO_TEST_CASE(counter_is_raised_once_per_interval)
{
    anchor_fixture f;
    BOOST_TEST(f.anchor.start_interval(start));
    BOOST_TEST(!f.anchor.start_interval(start));
    BOOST_TEST(!f.anchor.start_interval(start + 999ms));
    BOOST_TEST(f.anchor.start_interval(start + 1s));
    BOOST_TEST(!f.anchor.start_interval(start + 1s));
}

BOOST_AUTO_TEST_CASE(raise_by_new_connection_starts_an_interval)
{
    anchor_fixture f;
    f.anchor.note_raised(start);
    BOOST_TEST(!f.anchor.start_interval(start + 999ms));
    BOOST_TEST(f.anchor.start_interval(start + 1s));
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
