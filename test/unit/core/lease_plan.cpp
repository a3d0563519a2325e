// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/policy/lease_plan.hpp"
#include "remote/adapter/clock_lead.hpp"

#include <boost/test/unit_test.hpp>

#include <ostream>

using namespace colock;
using namespace std::chrono_literals;
using colock::detail::is_too_short;
using colock::detail::lease_plan;
using colock::detail::lease_request;
using colock::detail::local_deadline;

namespace colock::detail {

std::ostream& operator<<(std::ostream& out, lease_plan::action what)
{
    constexpr const char* names[] = {"wait", "lose", "stop_body", "renew"};
    return out << names[static_cast<unsigned>(what)];
}

} // namespace colock::detail

BOOST_AUTO_TEST_SUITE(lease_plans)

namespace {

using action = lease_plan::action;
using time_point = lease_clock::time_point;
constexpr time_point start{1000h};
constexpr auto never = time_point::max();
const lease_plan::margins by_default;

lease_plan renewed(std::chrono::milliseconds max_hold = 0ms)
{
    lease_plan plan;
    plan.asked_for(true, max_hold);
    return plan;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_lease_is_renewed_a_third_after_its_request_was_sent)
{
    auto plan = renewed();
    const auto ends = plan.granted({start, 30s});
    BOOST_TEST((ends == local_deadline({start, 30s})));
    BOOST_TEST((plan.next(start, ends, by_default, false).until == start + 10s));
    BOOST_TEST(plan.next(start + 10s, ends, by_default, false).what == action::renew);
    plan.forget_renewal();
    BOOST_TEST((plan.next(start + 10s, ends, by_default, false).until == ends));
    BOOST_TEST((plan.extended({start + 10s, 30s}, 30s) == local_deadline({start + 10s, 30s})));
    BOOST_TEST((plan.due(never, by_default, false) == start + 20s));
    plan.left_to_its_ttl();
    BOOST_TEST((plan.due(never, by_default, false) == never));
}

BOOST_AUTO_TEST_CASE(what_is_not_renewed_is_watched_for_those_who_are_to_hear_of_its_end)
{
    lease_plan plan;
    const auto ends = plan.granted({start, 30s});
    BOOST_TEST((plan.due(ends, by_default, false) == never));
    BOOST_TEST((plan.due(ends, by_default, true) == ends));
    plan.listener_enters();
    BOOST_TEST((plan.due(ends, by_default, false) == ends));
    plan.listener_leaves();
    BOOST_TEST((plan.due(ends, by_default, false) == never));
    plan.failed(start);
    plan.catches_up(start);
    BOOST_TEST((plan.due(ends, by_default, false) == never));
}

BOOST_AUTO_TEST_CASE(a_lease_without_ttl_has_no_end_and_no_renewal)
{
    auto plan = renewed(1min);
    BOOST_TEST((plan.granted({start, 0ms}) == never));
    BOOST_TEST(!plan.is_bounded());
    BOOST_TEST((plan.due(never, by_default, true) == never));
}

BOOST_AUTO_TEST_CASE(a_lease_that_is_over_is_lost_whatever_else_is_due)
{
    auto plan = renewed();
    plan.body_begins();
    const auto ends = plan.granted({start, 30s});
    BOOST_TEST(plan.next(ends, ends, by_default, false).what == action::lose);
    // By the end of a session, say.
    BOOST_TEST(plan.next(start + 1s, start + 1s, by_default, false).what == action::lose);
}

BOOST_AUTO_TEST_CASE(a_body_stops_a_tenth_of_the_lease_before_its_end_and_at_most_a_second)
{
    for (const auto& [ttl, margin] : {std::pair(5s, 500ms), std::pair(60s, 1000ms)}) {
        lease_plan plan;
        const auto ends = plan.granted({start, ttl});
        plan.body_begins();
        BOOST_TEST((plan.due(ends, by_default, false) == ends - margin));
        BOOST_TEST(plan.next(ends - margin - 1ns, ends, by_default, false).what == action::wait);
        BOOST_TEST(plan.next(ends - margin, ends, by_default, false).what == action::stop_body);
        plan.stops_body(lost_reason::expired);
        plan.stops_body(lost_reason::shutting_down);
        BOOST_CHECK(plan.stop_reason() == lost_reason::expired);
        BOOST_TEST((plan.next(ends - margin, ends, by_default, false).until == ends));
        plan.body_ends();
        BOOST_TEST((plan.due(ends, by_default, false) == never));
    }
}

BOOST_AUTO_TEST_CASE(the_stop_margin_of_a_body_that_a_shutdown_has_stopped_is_reached_all_the_same)
{
    lease_plan plan;
    const auto ends = plan.granted({start, 60s});
    plan.body_begins();
    plan.stops_body(lost_reason::shutting_down);
    BOOST_TEST(!plan.stop_margin_reached());
    BOOST_TEST(plan.next(ends - 1s, ends, by_default, false).what == action::stop_body);
    plan.stops_body(lost_reason::expired);
    BOOST_TEST(plan.stop_margin_reached());
    BOOST_TEST(plan.next(ends - 1s, ends, by_default, false).what == action::wait);
    BOOST_CHECK(plan.stop_reason() == lost_reason::shutting_down);
}

BOOST_AUTO_TEST_CASE(a_body_in_a_short_session_stops_a_tenth_of_that_before_its_end)
{
    lease_plan plan;
    static_cast<void>(plan.granted({start, 30s}, start + 1500ms));
    plan.body_begins();
    BOOST_TEST((plan.due(start + 1500ms, by_default, false) == start + 1350ms));
    // The session is raised; what is left of it in a whole was known at the grant.
    BOOST_TEST((plan.due(start + 9s, by_default, false) == start + 8850ms));
    BOOST_TEST((plan.due(start + 9s, {.stop_margin = 1s}, false) == start + 8s));

    lease_plan in_a_long_one;
    static_cast<void>(in_a_long_one.granted({start, 30s}, start + 12s));
    in_a_long_one.body_begins();
    BOOST_TEST((in_a_long_one.due(start + 12s, by_default, false) == start + 11s));
}

BOOST_AUTO_TEST_CASE(margins_of_ones_own_replace_those_that_follow_from_the_lease)
{
    lease_plan plan;
    const auto ends = plan.granted({start, 60s});
    plan.body_begins();
    BOOST_TEST((plan.due(ends, {.stop_margin = 7s}, false) == ends - 7s));
    BOOST_TEST((plan.due(ends, {.stop_margin = 0ms}, false) == ends));

    const auto latest = local_deadline({start, 60s});
    BOOST_TEST(lease_plan::arrives_in_time({start, 60s}, never, latest - 6s, {}));
    BOOST_TEST(!lease_plan::arrives_in_time({start, 60s}, never, latest - 6s + 1ns, {}));
    BOOST_TEST(lease_plan::arrives_in_time({start, 60s}, never, latest, {.minimum_validity = 0ms}));
    BOOST_TEST(!lease_plan::arrives_in_time({start, 60s}, never, latest, {.minimum_validity = 1ms}));
    // At least ten milliseconds.
    BOOST_TEST(!lease_plan::arrives_in_time({start, 50ms}, never, local_deadline({start, 50ms}) - 9ms, {}));
    BOOST_TEST(lease_plan::arrives_in_time({start, 0ms}, never, start + 1h, {}));
    // Of whichever ends first.
    BOOST_TEST(lease_plan::arrives_in_time({start, 60s}, start + 10s, start + 9900ms, {}));
    BOOST_TEST(!lease_plan::arrives_in_time({start, 60s}, start + 10s, start + 9900ms + 1ns, {}));
    BOOST_TEST(!lease_plan::arrives_in_time({start, 60s}, start + 10s, start + 5s, {.minimum_validity = 5001ms}));
    BOOST_TEST(!lease_plan::arrives_in_time({start, 0ms}, start + 1s, start + 1s - 9ms, {}));
}

BOOST_AUTO_TEST_CASE(a_clock_that_gets_ahead_shortens_every_lease)
{
    const auto led = [](std::chrono::milliseconds ttl) { return start + ttl - ttl / 100 - 2ms - 250ms; };
    auto plan = renewed();
    BOOST_TEST((plan.granted({start, 30s, 250ms}) == led(30s)));
    BOOST_TEST((plan.next(start, led(30s), by_default, false).until == start + 10s));
    BOOST_TEST((plan.extended({start + 10s, 30s, 250ms}, 30s) == led(30s) + 10s));
    BOOST_TEST(!plan.shortened({start + 10s, 30s, 250ms}, led(30s)));
    const auto sooner = plan.shortened({start, 10s, 250ms}, led(30s));
    BOOST_REQUIRE(sooner);
    BOOST_TEST((*sooner == led(10s)));
    // A body stops, and a grant comes too late, by the shortened lease.
    plan.body_begins();
    plan.left_to_its_ttl();
    BOOST_TEST((plan.due(*sooner, by_default, false) == *sooner - 1s));
    BOOST_TEST(lease_plan::arrives_in_time({start, 10s, 250ms}, never, led(10s) - 1s, by_default));
    BOOST_TEST(!lease_plan::arrives_in_time({start, 10s, 250ms}, never, led(10s) - 1s + 1ns, by_default));
    // A lock without a ttl has no expiry that a clock could bring nearer.
    BOOST_TEST((plan.granted({start, 0ms, 0ms}) == never));
    // A session ends by itself.
    BOOST_TEST(lease_plan::arrives_in_time({start, 30s, 250ms}, start + 10s, start + 9900ms, by_default));
}

// The backend ends a lease once its clock shows ttl more than at the grant. `jump`: by how much that clock has got
// ahead meanwhile; it may also fall behind.
BOOST_AUTO_TEST_CASE(a_lease_ends_before_the_backends_unless_its_clock_jumps_further_than_the_lead)
{
    struct row
    {
        std::chrono::milliseconds lead;
        std::chrono::milliseconds jump;
        bool safe;
    };
    constexpr auto ttl = 10s;
    constexpr auto margin = 102ms;
    for (const auto& [lead, jump, safe] :
        {row{0ms, 0ms, true}, row{0ms, -5s, true}, row{0ms, -20s, true}, row{0ms, margin, true},
            row{0ms, margin + 1ms, false}, row{0ms, 2s, false}, row{250ms, -2s, true}, row{250ms, 250ms, true},
            row{250ms, 250ms + margin, true}, row{250ms, 251ms + margin, false}, row{2s, 2s, true}, row{2s, 3s, false}})
    {
        const auto granted_at = start + 1ms;
        const auto free_at = granted_at + ttl - jump;
        BOOST_TEST((local_deadline({start, ttl, lead}) < free_at) == safe, "lead " << lead << ", jump " << jump);
    }
}

BOOST_AUTO_TEST_CASE(the_shortest_ttl_can_be_renewed_with_its_default_lead)
{
    using colock::remote::default_clock_lead;
    BOOST_TEST((default_clock_lead(100ms) == 10ms));
    BOOST_TEST((default_clock_lead(2499ms) == 249ms));
    BOOST_TEST((default_clock_lead(30s) == 250ms));
    BOOST_TEST(!is_too_short(100ms, default_clock_lead(100ms)));
    BOOST_TEST(!is_too_short(30s, default_clock_lead(30s)));

    const lease_request shortest{start, 100ms, default_clock_lead(100ms)};
    BOOST_TEST(lease_plan::arrives_in_time(shortest, never, start + 77ms, by_default));
    auto plan = renewed();
    plan.body_begins();
    const auto ends = plan.granted(shortest);
    BOOST_TEST((ends == start + 87ms));
    BOOST_TEST((plan.due(ends, by_default, false) == start + 33ms));
    plan.forget_renewal();
    BOOST_TEST((plan.due(ends, by_default, false) == start + 77ms));
}

BOOST_AUTO_TEST_CASE(a_ttl_has_to_be_four_times_the_lead)
{
    BOOST_TEST(!is_too_short(100ms, 0ms));
    BOOST_TEST(!is_too_short(100ms, 25ms));
    BOOST_TEST(is_too_short(100ms, 26ms));
    BOOST_TEST(is_too_short(103ms, 26ms));
    BOOST_TEST(!is_too_short(104ms, 26ms));
    BOOST_TEST(is_too_short(30s, std::chrono::milliseconds::max()));
}

BOOST_AUTO_TEST_CASE(max_hold_bounds_every_lease_and_what_a_renewal_asks_for)
{
    auto plan = renewed(35s);
    const auto first = plan.granted({start, 30s});
    BOOST_TEST(plan.is_bounded());
    BOOST_TEST((first == local_deadline({start, 30s})));
    BOOST_TEST((plan.renewal_ttl(start + 1s, 30s, 100ms) == 30s));
    BOOST_TEST((plan.renewal_ttl(start + 10s, 30s, 100ms) == 25s));
    // Less than a millisecond counts as one.
    BOOST_TEST((plan.renewal_ttl(start + 35s - 100ms - 1us, 30s, 100ms) == 101ms));
    BOOST_TEST((plan.renewal_ttl(start + 35s - 100ms + 1ms, 30s, 100ms) == std::nullopt));
    BOOST_TEST((plan.extended({start + 10s, 30s}, 30s) == start + 35s));
    // A renewal that asks for less is followed by the next as one in full is.
    BOOST_TEST((plan.extended({start + 20s, 15s}, 30s) == local_deadline({start + 20s, 15s})));
    BOOST_TEST((plan.due(never, by_default, false) == start + 30s));
    // The margins are parts of the shorter of both.
    auto brief = renewed(1s);
    brief.body_begins();
    const auto ends = brief.granted({start, 60s});
    BOOST_TEST((ends == start + 1s));
    brief.left_to_its_ttl();
    BOOST_TEST((brief.due(ends, by_default, false) == ends - 100ms));
}

BOOST_AUTO_TEST_CASE(a_shorter_ttl_counts_from_its_request_on)
{
    lease_plan plan;
    const auto ends = plan.granted({start, 60s});
    plan.body_begins();
    BOOST_TEST(!plan.shortened({start + 1s, 60s}, ends));
    const auto sooner = plan.shortened({start + 1s, 2s}, ends);
    BOOST_REQUIRE(sooner);
    BOOST_TEST((*sooner == local_deadline({start + 1s, 2s})));
    BOOST_TEST((plan.due(*sooner, by_default, false) == *sooner - 200ms));
    BOOST_TEST(!plan.shortened({start + 2s, 10s}, *sooner));
}

BOOST_AUTO_TEST_CASE(a_failed_renewal_is_tried_again_after_a_tenth_of_the_lease)
{
    for (const auto& [ttl, pause] : {std::pair(60'000ms, 1000ms), std::pair(5000ms, 500ms), std::pair(50ms, 10ms)}) {
        auto plan = renewed();
        const auto ends = plan.granted({start, ttl});
        plan.forget_renewal();
        plan.failed(start + ttl / 3);
        BOOST_TEST((plan.due(ends, by_default, false) == std::min(start + ttl / 3 + pause, ends)));
    }
}

BOOST_AUTO_TEST_CASE(a_renewal_that_fell_due_during_another_operation_is_made_up_for)
{
    auto plan = renewed();
    static_cast<void>(plan.granted({start, 30s}));
    plan.catches_up(start + 1s);
    BOOST_TEST((plan.due(never, by_default, false) == start + 10s));
    plan.forget_renewal();
    plan.catches_up(start + 12s);
    BOOST_TEST((plan.due(never, by_default, false) == start + 12s));
}

BOOST_AUTO_TEST_CASE(lease_of_a_group_has_what_was_asked_for_from_its_completion_on)
{
    auto plan = renewed();
    const auto ends = plan.granted({start, 30s});
    auto manual = plan;
    BOOST_TEST((manual.handed_out(start + 5s, false, 0ms, ends) == ends));
    BOOST_TEST((manual.due(ends, by_default, false) == never));
    auto bounded = plan;
    BOOST_TEST((bounded.handed_out(start + 5s, true, 10s, ends) == start + 15s));
    BOOST_TEST((bounded.due(start + 15s, by_default, false) == start + 10s));
    BOOST_TEST((bounded.extended({start + 10s, 30s}, 30s) == start + 15s));
    // A ttl of 0 has no end.
    auto endless = renewed();
    BOOST_TEST((endless.granted({start, 0s}) == never));
    BOOST_TEST((endless.handed_out(start + 5s, true, 10s, never) == never));
}

BOOST_AUTO_TEST_SUITE_END()
