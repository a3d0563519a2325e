// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/policy/lease_plan.hpp"
#include "remote/adapter/default_clock_lead.hpp"

#include <boost/test/unit_test.hpp>

#include <ostream>

using namespace colock;
using namespace std::chrono_literals;
using colock::detail::is_too_short;
using colock::detail::lease_plan;
using colock::detail::lease_request;
using colock::detail::local_expiry;

namespace colock::inline v0::detail {

std::ostream& operator<<(std::ostream& out, lease_plan::action what)
{
    constexpr const char* names[] = {"wait", "lose", "stop_body", "renew"};
    return out << names[static_cast<unsigned>(what)];
}

} // namespace colock::inline v0::detail

BOOST_AUTO_TEST_SUITE(lease_plans)

namespace {

using action = lease_plan::action;
using time_point = lease_clock::time_point;
constexpr time_point start{1000h};
constexpr auto never = time_point::max();
const lease_plan::margins default_margins;

lease_plan renewed(std::chrono::milliseconds max_hold = 0ms)
{
    return {true, max_hold};
}

} // namespace

BOOST_AUTO_TEST_CASE(lease_is_renewed_a_third_of_the_ttl_after_its_request)
{
    auto plan = renewed();
    const auto ends = plan.on_granted({start, 30s});
    BOOST_TEST((ends == local_expiry({start, 30s})));
    BOOST_TEST((plan.next(start, ends, default_margins, false).until == start + 10s));
    BOOST_TEST(plan.next(start + 10s, ends, default_margins, false).kind == action::renew);
    plan.forget_renewal();
    BOOST_TEST((plan.next(start + 10s, ends, default_margins, false).until == ends));
    BOOST_TEST((plan.on_extended({start + 10s, 30s}, 30s) == local_expiry({start + 10s, 30s})));
    BOOST_TEST((plan.due(never, default_margins, false) == start + 20s));
    plan.stop_renewals();
    BOOST_TEST((plan.due(never, default_margins, false) == never));
}

BOOST_AUTO_TEST_CASE(lease_without_renewal_is_watched_while_its_end_must_be_detected)
{
    lease_plan plan;
    const auto ends = plan.on_granted({start, 30s});
    BOOST_TEST((plan.due(ends, default_margins, false) == never));
    BOOST_TEST((plan.due(ends, default_margins, true) == ends));
    plan.add_listener();
    BOOST_TEST((plan.due(ends, default_margins, false) == ends));
    plan.remove_listener();
    BOOST_TEST((plan.due(ends, default_margins, false) == never));
    plan.on_failed(start);
    plan.catch_up(start);
    BOOST_TEST((plan.due(ends, default_margins, false) == never));
}

BOOST_AUTO_TEST_CASE(a_lease_without_ttl_has_no_end_and_no_renewal)
{
    auto plan = renewed(1min);
    BOOST_TEST((plan.on_granted({start, 0ms}) == never));
    BOOST_TEST(!plan.is_bounded());
    BOOST_TEST((plan.due(never, default_margins, true) == never));
}

BOOST_AUTO_TEST_CASE(ended_lease_is_lost_regardless_of_other_due_actions)
{
    auto plan = renewed();
    plan.begin_body();
    const auto ends = plan.on_granted({start, 30s});
    BOOST_TEST(plan.next(ends, ends, default_margins, false).kind == action::lose);
    // The lease may also end with its session.
    BOOST_TEST(plan.next(start + 1s, start + 1s, default_margins, false).kind == action::lose);
}

BOOST_AUTO_TEST_CASE(a_body_stops_a_tenth_of_the_lease_before_its_end_and_at_most_a_second)
{
    for (const auto& [ttl, margin] : {std::pair(5s, 500ms), std::pair(60s, 1000ms)}) {
        lease_plan plan;
        const auto ends = plan.on_granted({start, ttl});
        plan.begin_body();
        BOOST_TEST((plan.due(ends, default_margins, false) == ends - margin));
        BOOST_TEST(plan.next(ends - margin - 1ns, ends, default_margins, false).kind == action::wait);
        BOOST_TEST(plan.next(ends - margin, ends, default_margins, false).kind == action::stop_body);
        plan.stop_body(lost_reason::expired);
        plan.stop_body(lost_reason::shutting_down);
        BOOST_CHECK(plan.stop_reason() == lost_reason::expired);
        BOOST_TEST((plan.next(ends - margin, ends, default_margins, false).until == ends));
        plan.end_body();
        BOOST_TEST((plan.due(ends, default_margins, false) == never));
    }
}

BOOST_AUTO_TEST_CASE(stop_margin_is_reached_after_a_shutdown_has_stopped_the_body)
{
    lease_plan plan;
    const auto ends = plan.on_granted({start, 60s});
    plan.begin_body();
    plan.stop_body(lost_reason::shutting_down);
    BOOST_TEST(!plan.stop_margin_reached());
    BOOST_TEST(plan.next(ends - 1s, ends, default_margins, false).kind == action::stop_body);
    plan.stop_body(lost_reason::expired);
    BOOST_TEST(plan.stop_margin_reached());
    BOOST_TEST(plan.next(ends - 1s, ends, default_margins, false).kind == action::wait);
    BOOST_CHECK(plan.stop_reason() == lost_reason::shutting_down);
}

BOOST_AUTO_TEST_CASE(body_in_a_short_session_stops_a_tenth_before_the_end_of_the_session)
{
    lease_plan plan;
    static_cast<void>(plan.on_granted({start, 30s}, start + 1500ms));
    plan.begin_body();
    BOOST_TEST((plan.due(start + 1500ms, default_margins, false) == start + 1350ms));
    // The session is extended. Its full duration was known at the grant.
    BOOST_TEST((plan.due(start + 9s, default_margins, false) == start + 8850ms));
    BOOST_TEST((plan.due(start + 9s, {.stop_margin = 1s}, false) == start + 8s));

    lease_plan in_a_long_one;
    static_cast<void>(in_a_long_one.on_granted({start, 30s}, start + 12s));
    in_a_long_one.begin_body();
    BOOST_TEST((in_a_long_one.due(start + 12s, default_margins, false) == start + 11s));
}

BOOST_AUTO_TEST_CASE(configured_margins_replace_the_defaults)
{
    lease_plan plan;
    const auto ends = plan.on_granted({start, 60s});
    plan.begin_body();
    BOOST_TEST((plan.due(ends, {.stop_margin = 7s}, false) == ends - 7s));
    BOOST_TEST((plan.due(ends, {.stop_margin = 0ms}, false) == ends));

    const auto latest = local_expiry({start, 60s});
    BOOST_TEST(lease_plan::arrives_in_time({start, 60s}, never, latest - 6s, {}));
    BOOST_TEST(!lease_plan::arrives_in_time({start, 60s}, never, latest - 6s + 1ns, {}));
    BOOST_TEST(lease_plan::arrives_in_time({start, 60s}, never, latest, {.minimum_validity = 0ms}));
    BOOST_TEST(!lease_plan::arrives_in_time({start, 60s}, never, latest, {.minimum_validity = 1ms}));
    // At least ten milliseconds must be left.
    BOOST_TEST(!lease_plan::arrives_in_time({start, 50ms}, never, local_expiry({start, 50ms}) - 9ms, {}));
    BOOST_TEST(lease_plan::arrives_in_time({start, 0ms}, never, start + 1h, {}));
    // The earlier end counts.
    BOOST_TEST(lease_plan::arrives_in_time({start, 60s}, start + 10s, start + 9900ms, {}));
    BOOST_TEST(!lease_plan::arrives_in_time({start, 60s}, start + 10s, start + 9900ms + 1ns, {}));
    BOOST_TEST(!lease_plan::arrives_in_time({start, 60s}, start + 10s, start + 5s, {.minimum_validity = 5001ms}));
    BOOST_TEST(!lease_plan::arrives_in_time({start, 0ms}, start + 1s, start + 1s - 9ms, {}));
}

BOOST_AUTO_TEST_CASE(clock_lead_shortens_every_lease)
{
    const auto led = [](std::chrono::milliseconds ttl) { return start + ttl - ttl / 100 - 2ms - 250ms; };
    auto plan = renewed();
    BOOST_TEST((plan.on_granted({start, 30s, 250ms}) == led(30s)));
    BOOST_TEST((plan.next(start, led(30s), default_margins, false).until == start + 10s));
    BOOST_TEST((plan.on_extended({start + 10s, 30s, 250ms}, 30s) == led(30s) + 10s));
    BOOST_TEST(!plan.on_shortened({start + 10s, 30s, 250ms}, led(30s)));
    const auto sooner = plan.on_shortened({start, 10s, 250ms}, led(30s));
    BOOST_REQUIRE(sooner);
    BOOST_TEST((*sooner == led(10s)));
    // The shortened lease decides when a body stops, and which grant is too late.
    plan.begin_body();
    plan.stop_renewals();
    BOOST_TEST((plan.due(*sooner, default_margins, false) == *sooner - 1s));
    BOOST_TEST(lease_plan::arrives_in_time({start, 10s, 250ms}, never, led(10s) - 1s, default_margins));
    BOOST_TEST(!lease_plan::arrives_in_time({start, 10s, 250ms}, never, led(10s) - 1s + 1ns, default_margins));
    // A lock without a TTL has no expiry that a clock could bring nearer.
    BOOST_TEST((plan.on_granted({start, 0ms, 0ms}) == never));
    // A session is not affected by the lead.
    BOOST_TEST(lease_plan::arrives_in_time({start, 30s, 250ms}, start + 10s, start + 9900ms, default_margins));
}

// The backend ends a lease once its clock shows `ttl` more than at the grant. `jump` says by how much that clock has
// jumped ahead meanwhile; negative values are possible.
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
        BOOST_TEST((local_expiry({start, ttl, lead}) < free_at) == safe, "lead " << lead << ", jump " << jump);
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
    BOOST_TEST(lease_plan::arrives_in_time(shortest, never, start + 77ms, default_margins));
    auto plan = renewed();
    plan.begin_body();
    const auto ends = plan.on_granted(shortest);
    BOOST_TEST((ends == start + 87ms));
    BOOST_TEST((plan.due(ends, default_margins, false) == start + 33ms));
    plan.forget_renewal();
    BOOST_TEST((plan.due(ends, default_margins, false) == start + 77ms));
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

BOOST_AUTO_TEST_CASE(max_hold_bounds_every_lease_and_the_ttl_of_renewals)
{
    auto plan = renewed(35s);
    const auto first = plan.on_granted({start, 30s});
    BOOST_TEST(plan.is_bounded());
    BOOST_TEST((first == local_expiry({start, 30s})));
    BOOST_TEST((plan.renewal_ttl(start + 1s, 30s, 100ms) == 30s));
    BOOST_TEST((plan.renewal_ttl(start + 10s, 30s, 100ms) == 25s));
    // A fraction of a millisecond counts as one.
    BOOST_TEST((plan.renewal_ttl(start + 35s - 100ms - 1us, 30s, 100ms) == 101ms));
    BOOST_TEST((plan.renewal_ttl(start + 35s - 100ms + 1ms, 30s, 100ms) == std::nullopt));
    BOOST_TEST((plan.on_extended({start + 10s, 30s}, 30s) == start + 35s));
    // A renewal with a shorter TTL does not change when the next renewal is due.
    BOOST_TEST((plan.on_extended({start + 20s, 15s}, 30s) == local_expiry({start + 20s, 15s})));
    BOOST_TEST((plan.due(never, default_margins, false) == start + 30s));
    // The margins are fractions of the shorter of both.
    auto brief = renewed(1s);
    brief.begin_body();
    const auto ends = brief.on_granted({start, 60s});
    BOOST_TEST((ends == start + 1s));
    brief.stop_renewals();
    BOOST_TEST((brief.due(ends, default_margins, false) == ends - 100ms));
}

BOOST_AUTO_TEST_CASE(a_shorter_ttl_counts_from_its_request_on)
{
    lease_plan plan;
    const auto ends = plan.on_granted({start, 60s});
    plan.begin_body();
    BOOST_TEST(!plan.on_shortened({start + 1s, 60s}, ends));
    const auto sooner = plan.on_shortened({start + 1s, 2s}, ends);
    BOOST_REQUIRE(sooner);
    BOOST_TEST((*sooner == local_expiry({start + 1s, 2s})));
    BOOST_TEST((plan.due(*sooner, default_margins, false) == *sooner - 200ms));
    BOOST_TEST(!plan.on_shortened({start + 2s, 10s}, *sooner));
}

BOOST_AUTO_TEST_CASE(a_failed_renewal_is_tried_again_after_a_tenth_of_the_lease)
{
    for (const auto& [ttl, pause] : {std::pair(60'000ms, 1000ms), std::pair(5000ms, 500ms), std::pair(50ms, 10ms)}) {
        auto plan = renewed();
        const auto ends = plan.on_granted({start, ttl});
        plan.forget_renewal();
        plan.on_failed(start + ttl / 3);
        BOOST_TEST((plan.due(ends, default_margins, false) == std::min(start + ttl / 3 + pause, ends)));
    }
}

BOOST_AUTO_TEST_CASE(renewal_due_during_another_operation_is_made_afterwards)
{
    auto plan = renewed();
    static_cast<void>(plan.on_granted({start, 30s}));
    plan.catch_up(start + 1s);
    BOOST_TEST((plan.due(never, default_margins, false) == start + 10s));
    plan.forget_renewal();
    plan.catch_up(start + 12s);
    BOOST_TEST((plan.due(never, default_margins, false) == start + 12s));
}

BOOST_AUTO_TEST_CASE(requested_options_of_a_group_apply_from_its_completion)
{
    auto plan = renewed();
    const auto ends = plan.on_granted({start, 30s});
    auto manual = plan;
    BOOST_TEST((manual.on_group_complete(start + 5s, false, 0ms, ends) == ends));
    BOOST_TEST((manual.due(ends, default_margins, false) == never));
    auto bounded = plan;
    BOOST_TEST((bounded.on_group_complete(start + 5s, true, 10s, ends) == start + 15s));
    BOOST_TEST((bounded.due(start + 15s, default_margins, false) == start + 10s));
    BOOST_TEST((bounded.on_extended({start + 10s, 30s}, 30s) == start + 15s));
    // A TTL of 0 means no expiry.
    auto endless = renewed();
    BOOST_TEST((endless.on_granted({start, 0s}) == never));
    BOOST_TEST((endless.on_group_complete(start + 5s, true, 10s, never) == never));
}

BOOST_AUTO_TEST_SUITE_END()
