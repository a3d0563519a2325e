// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/policy/retry_schedule.hpp"

#include <colock/clock.hpp>
#include <colock/retry_policy.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

using namespace colock;
using namespace std::chrono_literals;
using colock::detail::retry_schedule;

namespace {

using duration = lease_clock::duration;
using time_point = lease_clock::time_point;
constexpr time_point begin_time{1000h};

std::vector<duration> delays(const retry_policy& policy, std::size_t count)
{
    std::vector<duration> result;
    for (std::size_t number = 0; number < count; ++number) {
        if (const auto delay = policy.delay_after({number, begin_time, {}}))
            result.push_back(*delay);
    }
    return result;
}

} // namespace

BOOST_AUTO_TEST_SUITE(retry)

BOOST_AUTO_TEST_CASE(each_kind_has_its_series)
{
    BOOST_TEST((delays(retry_policy::fixed(3s), 4) == std::vector<duration>{3s, 3s, 3s, 3s}));
    BOOST_TEST((delays(retry_policy::linear(1s, 2s), 4) == std::vector<duration>{1s, 3s, 5s, 7s}));
    BOOST_TEST(
        (delays(retry_policy::exponential(100ms, 3.0, 1s), 5) == std::vector<duration>{100ms, 300ms, 900ms, 1s, 1s}));
    BOOST_TEST((delays(retry_policy::forever(), 2) == std::vector<duration>{2s, 2s}));
    BOOST_TEST(delays(retry_policy::never(), 2).empty());
    BOOST_TEST((delays(retry_policy::fixed(0s), 2) == std::vector<duration>{0s, 0s}));
}

BOOST_AUTO_TEST_CASE(times_counts_the_retries_after_the_first_attempt)
{
    const auto policy = retry_policy::fixed(1s).jitter(0).times(2);
    retry_schedule schedule(policy, begin_time);
    BOOST_TEST((schedule.next_at() == begin_time));
    BOOST_TEST(schedule.on_failed(begin_time + 1s));
    BOOST_TEST((schedule.next_at() == begin_time + 2s));
    BOOST_TEST(schedule.on_failed(begin_time + 5s));
    BOOST_TEST((schedule.next_at() == begin_time + 6s));
    BOOST_TEST(!schedule.on_failed(begin_time + 6s));
    BOOST_TEST(schedule.attempts() == 3U);
}

BOOST_AUTO_TEST_CASE(only_limited_policies_are_finite)
{
    BOOST_TEST(!retry_policy::forever().finite());
    BOOST_TEST(!retry_policy::exponential(1s, 2.0, 4s).finite());
    BOOST_TEST(retry_policy::never().finite());
    BOOST_TEST(retry_policy::fixed(1s).times(3).finite());
    BOOST_TEST(retry_policy::fixed(1s).total_time(3s).finite());
    BOOST_TEST(retry_policy::custom([](const retry_attempt&) { return 1s; }).finite());
}

BOOST_AUTO_TEST_CASE(total_time_is_one_absolute_deadline)
{
    const auto policy = retry_policy::fixed(1s).total_time(10s);
    retry_schedule schedule(policy, begin_time);
    BOOST_TEST((schedule.deadline() == begin_time + 10s));
    BOOST_TEST(schedule.on_failed(begin_time + 7s));
    BOOST_TEST((schedule.deadline() == begin_time + 10s));
    const auto unlimited = retry_policy::forever();
    BOOST_TEST((retry_schedule(unlimited, begin_time).deadline() == time_point::max()));
}

BOOST_AUTO_TEST_CASE(within_is_a_total_time)
{
    const auto policy = within(5s);
    BOOST_TEST((policy.max_time() == 5s));
    BOOST_TEST(!policy.max_retries());
    BOOST_TEST((delays(policy, 2) == delays(retry_policy::forever(), 2)));
    BOOST_TEST(policy.jitter() == retry_policy::forever().jitter());
    BOOST_TEST((within(std::chrono::duration<double>(0.5)).max_time() == 500ms));
    BOOST_TEST((within(std::chrono::hours::max()).max_time() == duration::max()));
}

BOOST_AUTO_TEST_CASE(within_no_time_is_a_single_attempt)
{
    for (const auto& policy : {within(0s), within(-1h), within(std::chrono::duration<double>(1e-12))}) {
        BOOST_TEST(policy.problem().empty(), policy.problem());
        BOOST_TEST((policy.max_retries() == 0U));
        BOOST_TEST(!policy.max_time());
    }
}

BOOST_AUTO_TEST_CASE(default_made_policy_sets_nothing)
{
    const retry_policy policy;
    BOOST_TEST(policy.empty());
    BOOST_TEST(!policy.finite());
    BOOST_TEST(policy.problem().empty(), policy.problem());
    BOOST_TEST((delays(policy, 2) == delays(retry_policy::forever(), 2)));
    BOOST_TEST(policy.jitter() == retry_policy::forever().jitter());
    BOOST_TEST(!retry_policy().jitter(0.2).empty());
    BOOST_TEST(!retry_policy().times(0).empty());
    BOOST_TEST(!retry_policy().total_time(1s).empty());
    for (const auto& made : {retry_policy::forever(), retry_policy::never(), retry_policy::linear(0s, 0s),
             retry_policy::exponential(0s, 1.0, 0s), retry_policy::custom(nullptr)})
        BOOST_TEST(!made.empty());
}

BOOST_AUTO_TEST_CASE(unset_properties_are_those_of_the_defaults)
{
    const auto defaults = retry_policy::linear(1s, 2s).jitter(0.5).times(7).total_time(1min);
    const auto check = [&](const retry_policy& policy, double jitter, std::size_t times, duration total) {
        const auto combined = policy.with_defaults(defaults);
        BOOST_TEST((delays(combined, 3) == delays(defaults, 3)));
        BOOST_TEST(combined.jitter() == jitter);
        BOOST_TEST((combined.max_retries() == times));
        BOOST_TEST((combined.max_time() == total));
    };
    check({}, 0.5, 7, 1min);
    check(retry_policy().jitter(0.0), 0.0, 7, 1min);
    check(retry_policy().times(9), 0.5, 9, 1min);
    check(retry_policy().total_time(5s), 0.5, 7, 5s);
    check(retry_policy().jitter(0.1).times(9).total_time(5s), 0.1, 9, 5s);
    BOOST_TEST(!retry_policy().with_defaults({}).finite());
}

BOOST_AUTO_TEST_CASE(policy_of_a_factory_has_no_defaults)
{
    const auto defaults = retry_policy::linear(1s, 2s).jitter(0.5).times(7).total_time(1min);
    for (const auto& made : {retry_policy::fixed(4s), retry_policy::exponential(4s, 1.0, 4s), within(0s)}) {
        const auto combined = made.with_defaults(defaults);
        BOOST_TEST((delays(combined, 9) == delays(made, 9)));
        BOOST_TEST(combined.jitter() == made.jitter());
        BOOST_TEST((combined.max_retries() == made.max_retries()));
        BOOST_TEST(!combined.max_time());
    }
}

BOOST_AUTO_TEST_CASE(jitter_spreads_evenly_over_its_range_and_no_further)
{
    const auto policy = retry_policy::fixed(1000ms).jitter(0.5);
    duration least = 1h;
    duration most = 0s;
    for (int n = 0; n < 2000; ++n) {
        retry_schedule schedule(policy, begin_time);
        BOOST_TEST_REQUIRE(schedule.on_failed(begin_time));
        const auto delay = schedule.next_at() - begin_time;
        least = std::min(least, delay);
        most = std::max(most, delay);
    }
    BOOST_TEST((least >= 500ms));
    BOOST_TEST((most <= 1500ms));
    // The probability that 2000 draws miss one end is below 1e-44.
    BOOST_TEST((least < 550ms));
    BOOST_TEST((most > 1450ms));
}

BOOST_AUTO_TEST_CASE(only_fixed_delays_have_jitter_by_default)
{
    BOOST_TEST(retry_policy::fixed(1s).jitter() == 0.2);
    BOOST_TEST(retry_policy::forever().jitter() == 0.2);
    BOOST_TEST(retry_policy::linear(1s, 1s).jitter() == 0.0);
    BOOST_TEST(retry_policy::exponential(1s, 2.0, 1h).jitter() == 0.0);
    BOOST_TEST(retry_policy::custom([](const retry_attempt&) { return 1s; }).jitter() == 0.0);
}

BOOST_AUTO_TEST_CASE(full_jitter_may_give_no_delay_but_never_a_negative_one)
{
    const auto policy = retry_policy::fixed(1s).jitter(1.0);
    for (int n = 0; n < 500; ++n) {
        retry_schedule schedule(policy, begin_time);
        BOOST_TEST_REQUIRE(schedule.on_failed(begin_time));
        BOOST_TEST((schedule.next_at() >= begin_time && schedule.next_at() <= begin_time + 2s));
    }
}

BOOST_AUTO_TEST_CASE(custom_function_gets_number_start_and_previous_delay)
{
    std::vector<retry_attempt> attempts;
    const auto policy = retry_policy::custom([&](const retry_attempt& attempt) -> retry_decision {
        attempts.push_back(attempt);
        if (attempt.number == 2)
            return retry_stop;
        return attempt.number == 0 ? 7s : 0s;
    });
    retry_schedule schedule(policy, begin_time);
    BOOST_TEST(schedule.on_failed(begin_time + 1s));
    BOOST_TEST((schedule.next_at() == begin_time + 8s));
    BOOST_TEST(schedule.on_failed(begin_time + 8s));
    BOOST_TEST((schedule.next_at() == begin_time + 8s));
    BOOST_TEST(!schedule.on_failed(begin_time + 9s));
    BOOST_TEST_REQUIRE(attempts.size() == 3U);
    for (std::size_t n = 0; n < attempts.size(); ++n) {
        BOOST_TEST(attempts[n].number == n);
        BOOST_TEST((attempts[n].start == begin_time));
    }
    BOOST_TEST((attempts[0].previous_delay == 0s));
    BOOST_TEST((attempts[1].previous_delay == 7s));
    BOOST_TEST((attempts[2].previous_delay == 0s));
}

BOOST_AUTO_TEST_CASE(a_custom_function_may_be_limited_and_may_throw)
{
    const auto limited = retry_policy::custom([](const retry_attempt&) { return 1s; }).times(1);
    retry_schedule schedule(limited, begin_time);
    BOOST_TEST(schedule.on_failed(begin_time));
    BOOST_TEST(!schedule.on_failed(begin_time));

    const auto thrower =
        retry_policy::custom([](const retry_attempt&) -> retry_decision { throw std::domain_error("no"); });
    retry_schedule failing(thrower, begin_time);
    BOOST_CHECK_THROW(static_cast<void>(failing.on_failed(begin_time)), std::domain_error);
}

BOOST_AUTO_TEST_CASE(a_decision_clamps_what_it_is_given)
{
    BOOST_TEST((*retry_decision(-3s).delay() == 0s));
    BOOST_TEST((*retry_decision(std::chrono::nanoseconds::min()).delay() == 0s));
    BOOST_TEST((*retry_decision(1500us).delay() == 1500us));
    BOOST_TEST((*retry_decision(std::chrono::duration<double>(0.25)).delay() == 250ms));
    BOOST_TEST(!retry_decision(retry_stop).delay());
    const duration longest = std::chrono::hours(24 * 3650);
    BOOST_TEST((*retry_decision(std::chrono::hours::max()).delay() == longest));
    BOOST_TEST((*retry_decision(std::chrono::seconds::max()).delay() == longest));
    BOOST_TEST((*retry_decision(std::chrono::duration<double>(1e300)).delay() == longest));
}

BOOST_AUTO_TEST_CASE(delays_that_overflow_saturate)
{
    const auto exponential = retry_policy::exponential(1h, 1000.0, duration::max());
    for (const std::size_t number : {5UL, 500UL, std::numeric_limits<std::size_t>::max()})
        BOOST_TEST((*exponential.delay_after({number, begin_time, {}}) == duration::max()));
    const auto linear = retry_policy::linear(duration::max(), duration::max());
    BOOST_TEST((*linear.delay_after({0, begin_time, {}}) == duration::max()));
    BOOST_TEST((*linear.delay_after({1'000'000, begin_time, {}}) == duration::max()));
    const auto nothing = retry_policy::exponential(0s, 10.0, 1h);
    for (const std::size_t number : {0UL, 3UL, 100'000UL})
        BOOST_TEST((*nothing.delay_after({number, begin_time, {}}) == 0s));

    for (const double jitter : {0.0, 1.0}) {
        const auto policy = retry_policy::fixed(duration::max()).jitter(jitter);
        retry_schedule schedule(policy, begin_time);
        BOOST_TEST(schedule.on_failed(begin_time));
        BOOST_TEST((schedule.next_at() >= begin_time));
        if (jitter == 0.0)
            BOOST_TEST((schedule.next_at() == time_point::max()));
    }
    const auto endless = retry_policy::fixed(1s).total_time(duration::max());
    BOOST_TEST((retry_schedule(endless, begin_time).deadline() == time_point::max()));
}

BOOST_AUTO_TEST_CASE(every_contradiction_is_reported)
{
    const auto nan = std::numeric_limits<double>::quiet_NaN();
    const auto infinite = std::numeric_limits<double>::infinity();
    const struct
    {
        retry_policy policy;
        std::string names;
    } refused[] = {
        {retry_policy::fixed(-1ms), "delay"},
        {retry_policy::linear(-1ms, 1s), "delay"},
        {retry_policy::linear(1s, -1ms), "step"},
        {retry_policy::exponential(-1s, 2.0, 1h), "delay"},
        {retry_policy::exponential(1s, 0.99, 1h), "factor"},
        {retry_policy::exponential(1s, -2.0, 1h), "factor"},
        {retry_policy::exponential(1s, nan, 1h), "factor"},
        {retry_policy::exponential(1s, infinite, 1h), "factor"},
        {retry_policy::exponential(2s, 2.0, 1s), "cap"},
        {retry_policy::fixed(1s).jitter(-0.01), "jitter"},
        {retry_policy::fixed(1s).jitter(1.01), "jitter"},
        {retry_policy::fixed(1s).jitter(nan), "jitter"},
        {retry_policy::fixed(1s).total_time(0s), "total time"},
        {retry_policy::fixed(1s).total_time(-1s), "total time"},
        {retry_policy::custom(nullptr), "custom"},
        {retry_policy::custom([](const retry_attempt&) { return 1s; }).jitter(0.5), "custom"},
    };
    for (const auto& [policy, names] : refused) {
        BOOST_TEST_CONTEXT("names " << names)
        {
            BOOST_TEST(policy.problem().find(names) != std::string::npos, policy.problem());
        }
    }
    const retry_policy accepted[] = {
        retry_policy::fixed(0s),
        retry_policy::linear(0s, 0s),
        retry_policy::exponential(0s, 1.0, 0s),
        retry_policy::exponential(1s, 1.0, 1s),
        retry_policy::fixed(1s).jitter(0).times(0),
        retry_policy::fixed(1s).jitter(1).total_time(1ns),
        retry_policy::custom([](const retry_attempt&) { return 1s; }).times(3).total_time(1s),
        retry_policy::forever(),
        retry_policy::never(),
    };
    for (const auto& policy : accepted)
        BOOST_TEST(policy.problem().empty(), policy.problem());
}

BOOST_AUTO_TEST_SUITE_END()
