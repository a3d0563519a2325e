// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/policy/deadlines.hpp"
#include "support/print.hpp"

#include <boost/asio/error.hpp>
#include <boost/test/unit_test.hpp>

using namespace colock;
using namespace std::chrono_literals;
using remote::deadlines;
using remote::delivery;

BOOST_AUTO_TEST_SUITE(remote_deadlines)

namespace {

constexpr lease_clock::time_point start{std::chrono::hours(100)};

} // namespace

BOOST_AUTO_TEST_CASE(operation_ends_at_its_deadline_and_not_before)
{
    const deadlines limits(5s);
    BOOST_TEST((limits.deadline_for(start) == start + 5s));
    BOOST_TEST(!deadlines::is_over(start + 5s, start + 5s - 1ns));
    BOOST_TEST(deadlines::is_over(start + 5s, start + 5s));
    BOOST_TEST((deadlines(lease_clock::duration::max()).deadline_for(start) == lease_clock::time_point::max()));
}

BOOST_AUTO_TEST_CASE(check_interval_is_a_small_part_of_the_timeout)
{
    BOOST_TEST((deadlines(10ms).check_interval() == 5ms));
    BOOST_TEST((deadlines(1s).check_interval() == 50ms));
    BOOST_TEST((deadlines(1h).check_interval() == 100ms));
}

BOOST_AUTO_TEST_CASE(time_without_a_running_event_loop_is_not_counted)
{
    BOOST_TEST((deadlines::stall_time(start, start) == 0s));
    // Timers may fire slightly early or late.
    BOOST_TEST((deadlines::stall_time(start, start - 1ms) == 0s));
    BOOST_TEST((deadlines::stall_time(start, start + 250ms) == 0s));
    BOOST_TEST((deadlines::stall_time(start, start + 251ms) == 251ms));
    BOOST_TEST((deadlines::stall_time(start, start + 1h) == 1h));
}

BOOST_AUTO_TEST_CASE(overdue_unsent_is_unavailable_and_sent_is_outcome_unknown)
{
    const auto connection_failure = make_failure(errc::unavailable, "nobody is there", asio::error::connection_refused);
    BOOST_TEST(deadlines::overdue_failure(delivery::unsent, nullptr)->code == errc::unavailable);
    BOOST_TEST(
        deadlines::overdue_failure(delivery::unsent, nullptr)->detail == "not sent within the operation timeout");
    const auto unsent = deadlines::overdue_failure(delivery::unsent, connection_failure);
    BOOST_TEST(unsent->code == errc::unavailable);
    BOOST_TEST(unsent->detail == "not sent within the operation timeout: nobody is there");
    BOOST_TEST((unsent->cause == asio::error::connection_refused));
    const auto unanswered = deadlines::overdue_failure(delivery::unanswered, connection_failure);
    BOOST_TEST(unanswered->code == errc::outcome_unknown);
    BOOST_TEST(unanswered->detail == "no answer within the operation timeout");
}

BOOST_AUTO_TEST_SUITE_END()
