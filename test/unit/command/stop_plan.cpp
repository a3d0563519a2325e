// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/stop_plan.hpp"
#include "support/print.hpp"

#include <boost/test/unit_test.hpp>

using namespace std::chrono_literals;
using command::stop_plan;

BOOST_AUTO_TEST_SUITE(command_stop_plan)

constexpr stop_plan::time_point start{1h};

BOOST_AUTO_TEST_CASE(renewed_lease_ends_nothing)
{
    stop_plan plan(5s);
    for (auto now = start; now < start + 60s; now += 1s) {
        const auto decision = plan.next(now, now + 20s);
        BOOST_TEST(!decision.terminate);
        BOOST_TEST(!decision.kill);
        BOOST_TEST((decision.until == now + 20s - 5500ms));
    }
    BOOST_TEST(!plan.is_terminating());
    BOOST_TEST(!plan.is_lost());
}

BOOST_AUTO_TEST_CASE(lease_that_ends_terminates_before_the_grace_and_kills_before_the_end)
{
    stop_plan plan(5s);
    const auto end = start + 30s;
    BOOST_TEST(!plan.next(end - 5501ms, end).terminate);
    const auto first = plan.next(end - 5500ms, end);
    BOOST_TEST(first.terminate);
    BOOST_TEST(!first.kill);
    BOOST_TEST((first.until == end - 500ms));
    BOOST_TEST(!plan.next(end - 501ms, end).kill);
    const auto last = plan.next(end - 500ms, end);
    BOOST_TEST(!last.terminate);
    BOOST_TEST(last.kill);
    BOOST_TEST((last.until == stop_plan::time_point::max()));
    BOOST_TEST(!plan.next(end, end).kill);
    BOOST_TEST(plan.is_lost());
}

BOOST_AUTO_TEST_CASE(renewal_after_the_termination_does_not_delay_the_kill)
{
    stop_plan plan(5s);
    BOOST_TEST(plan.next(start, start + 5s).terminate);
    BOOST_TEST((plan.next(start + 1s, start + 30s).until == start + 4500ms));
    BOOST_TEST(plan.next(start + 4500ms, start + 30s).kill);
    BOOST_TEST(plan.is_lost());
}

BOOST_AUTO_TEST_CASE(lease_that_ended_during_a_pause_terminates_and_kills_at_once)
{
    stop_plan plan(5s);
    const auto decision = plan.next(start + 1min, start);
    BOOST_TEST(decision.terminate);
    BOOST_TEST(decision.kill);
}

BOOST_AUTO_TEST_CASE(known_loss_terminates_at_once_and_kills_after_the_grace)
{
    stop_plan plan(5s);
    plan.on_lost(start, false);
    const auto first = plan.next(start, start + 30s);
    BOOST_TEST(first.terminate);
    BOOST_TEST((first.until == start + 5s));
    BOOST_TEST(plan.next(start + 5s, start + 30s).kill);
    BOOST_TEST(plan.is_lost());
}

BOOST_AUTO_TEST_CASE(lease_that_has_ended_leaves_no_grace)
{
    stop_plan plan(5s);
    plan.on_lost(start, false);
    BOOST_TEST(!plan.next(start, start + 30s).kill);
    plan.on_lost(start + 1s, true);
    const auto decision = plan.next(start + 1s, start + 30s);
    BOOST_TEST(!decision.terminate);
    BOOST_TEST(decision.kill);
}

BOOST_AUTO_TEST_CASE(forwarded_signal_kills_after_the_grace_without_a_second_signal)
{
    stop_plan plan(5s);
    plan.on_signal(start);
    const auto first = plan.next(start, start + 30s);
    BOOST_TEST(!first.terminate);
    BOOST_TEST((first.until == start + 5s));
    BOOST_TEST(plan.next(start + 5s, start + 30s).kill);
    BOOST_TEST(plan.is_terminating());
    BOOST_TEST(!plan.is_lost());
}

BOOST_AUTO_TEST_CASE(later_signal_and_later_loss_do_not_delay_the_kill)
{
    stop_plan plan(5s);
    plan.on_signal(start);
    plan.on_signal(start + 3s);
    plan.on_lost(start + 4s, false);
    const auto decision = plan.next(start + 5s, start + 30s);
    BOOST_TEST(!decision.terminate);
    BOOST_TEST(decision.kill);
    BOOST_TEST(plan.is_lost());
}

BOOST_AUTO_TEST_CASE(end_of_the_lease_kills_earlier_than_the_grace_of_a_signal)
{
    stop_plan plan(5s);
    plan.on_signal(start);
    BOOST_TEST((plan.next(start, start + 2s).until == start + 1500ms));
    BOOST_TEST(plan.next(start + 1500ms, start + 2s).kill);
}

BOOST_AUTO_TEST_SUITE_END()
