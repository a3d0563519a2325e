// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/policy/connection_plan.hpp"

#include <boost/test/unit_test.hpp>

#include <optional>

using namespace colock;
using namespace std::chrono_literals;
using remote::connection_plan;

BOOST_AUTO_TEST_SUITE(remote_connection_plan)

namespace {

using event = connection_plan::event;
using kind = connection_plan::action::kind;
using reported_event = remote::connection_events::event;
using phase = connection_plan::phase;
constexpr lease_clock::time_point start{std::chrono::hours(100)};
constexpr connection_plan::demand busy{.needed = true, .has_in_flight = true};
constexpr connection_plan::demand queued{.needed = true, .has_in_flight = false};
constexpr connection_plan::demand unneeded{.needed = false, .has_in_flight = false};

/// A plan and its last action.
struct steps
{
    explicit steps(lease_clock::duration idle_timeout = 10s) : plan(idle_timeout, events) {}

    kind operator()(event input, connection_plan::demand demand = queued)
    {
        const auto next = plan.resume(now, input, demand);
        reported = next.report;
        delay = next.delay;
        return next.step;
    }
    void open()
    {
        static_cast<void>((*this)(event::needed));
        static_cast<void>((*this)(event::opened));
    }
    [[nodiscard]] std::optional<lease_clock::duration> timer_delay(
        connection_plan::client_state client_state = {.others_open = false},
        connection_plan::demand demand = unneeded) const
    {
        return plan.next_timer_in(demand, client_state, 77ms);
    }
    [[nodiscard]] bool is_in(phase expected) const { return plan.current() == expected; }

    remote::connection_events events;
    connection_plan plan;
    lease_clock::time_point now = start;
    reported_event reported = reported_event::none;
    lease_clock::duration delay{};
};

} // namespace

BOOST_AUTO_TEST_CASE(first_request_starts_the_connection)
{
    steps step;
    BOOST_TEST(step.is_in(phase::idle));
    BOOST_TEST((step(event::timer, unneeded) == kind::none));
    BOOST_TEST((step(event::needed) == kind::connect));
    // A second call has no effect.
    BOOST_TEST((step(event::needed) == kind::none));
    BOOST_TEST((step(event::opened) == kind::none));
    BOOST_TEST((step.reported == reported_event::up));
    BOOST_TEST((step(event::needed) == kind::none));
    BOOST_TEST(step.plan.takes_requests());
}

BOOST_AUTO_TEST_CASE(end_of_an_unneeded_attempt_is_reported)
{
    for (const auto input : {event::timer, event::refused}) {
        steps step;
        static_cast<void>(step(event::needed));
        BOOST_TEST((step.reported == reported_event::connecting));
        step.now += 2s;
        BOOST_TEST((step(input, unneeded) == kind::disconnect));
        BOOST_TEST((step.reported == reported_event::idle));
        // The same is reported for a connection that is closed.
        step.open();
        step.plan.close(step.now);
        BOOST_TEST((step(event::timer, unneeded) == kind::disconnect));
        BOOST_TEST((step.reported == reported_event::idle));
    }
}

BOOST_AUTO_TEST_CASE(refused_open_connection_is_closed_without_a_loss)
{
    steps step;
    step.open();
    BOOST_TEST((step(event::refused, unneeded) == kind::disconnect));
    BOOST_TEST((step.reported == reported_event::idle));
    BOOST_TEST(step.is_in(phase::idle));
    // The refused connection is not counted any more, so the loss of the next connection is reported.
    step.open();
    static_cast<void>(step(event::lost));
    BOOST_TEST((step.reported == reported_event::lost));
}

BOOST_AUTO_TEST_CASE(loss_and_reconnection_are_reported_once_each)
{
    steps step;
    step.open();
    BOOST_TEST((step.reported == reported_event::up));
    for (int round = 0; round < 3; ++round) {
        BOOST_TEST((step(event::lost) == kind::wait));
        BOOST_TEST((step.reported == reported_event::lost));
        for (int attempt = 0; attempt < 3; ++attempt) {
            BOOST_TEST((step(event::due) == kind::connect));
            BOOST_TEST((step(attempt == 1 ? event::lost : event::failed) == kind::wait));
            BOOST_TEST((step.reported == reported_event::failed));
        }
        BOOST_TEST((step(event::due) == kind::connect));
        BOOST_TEST((step(event::opened) == kind::none));
        BOOST_TEST((step.reported == reported_event::up));
    }
}

BOOST_AUTO_TEST_CASE(next_connection_waits_until_all_operations_in_flight_are_notified)
{
    steps step;
    step.open();
    BOOST_TEST((step(event::lost, busy) == kind::none));
    BOOST_TEST((step.reported == reported_event::lost));
    BOOST_TEST(!step.plan.takes_requests());
    BOOST_TEST((step(event::needed) == kind::none));
    BOOST_TEST((step(event::timer, busy) == kind::none));
    BOOST_TEST((step(event::drained) == kind::wait));
    BOOST_TEST((step.reported == reported_event::none));
    // A second event has no effect.
    BOOST_TEST((step(event::drained) == kind::none));
}

BOOST_AUTO_TEST_CASE(delay_grows_with_each_failure_and_is_zero_after_silence)
{
    steps step;
    static_cast<void>(step(event::needed));
    for (const auto middle : {100ms, 200ms, 400ms, 800ms, 1600ms, 1600ms}) {
        BOOST_TEST((step(event::failed) == kind::wait));
        BOOST_TEST((step.delay >= middle / 2 && step.delay <= middle * 3 / 2));
        BOOST_TEST((step(event::due) == kind::connect));
    }
    static_cast<void>(step(event::opened));
    BOOST_TEST((step(event::silent, busy) == kind::none));
    BOOST_TEST((step(event::drained) == kind::wait));
    BOOST_TEST((step.delay == 0ns));
    BOOST_TEST((step(event::due) == kind::connect));
    // Silence skips only one delay. The established connection has reset the back-off.
    BOOST_TEST((step(event::failed) == kind::wait));
    BOOST_TEST((step.delay >= 50ms && step.delay <= 150ms));
}

BOOST_AUTO_TEST_CASE(unneeded_connection_is_not_established_again)
{
    for (const auto input : {event::failed, event::lost}) {
        steps step;
        static_cast<void>(step(event::needed));
        BOOST_TEST((step(input, unneeded) == kind::disconnect));
        BOOST_TEST((step.reported == reported_event::failed));
        BOOST_TEST(step.is_in(phase::idle));
    }
    steps step;
    step.open();
    BOOST_TEST((step(event::lost, unneeded) == kind::disconnect));
    BOOST_TEST((step.reported == reported_event::lost));
    BOOST_TEST((step(event::needed) == kind::connect));
    static_cast<void>(step(event::failed));
    BOOST_TEST((step(event::due, unneeded) == kind::disconnect));
    // The timer fires late, after the plan has become idle.
    BOOST_TEST((step(event::due) == kind::none));
    BOOST_TEST(step.is_in(phase::idle));
}

BOOST_AUTO_TEST_CASE(refusal_ends_the_attempts_until_the_next_request)
{
    steps step;
    static_cast<void>(step(event::needed));
    BOOST_TEST((step(event::refused) == kind::disconnect));
    BOOST_TEST((step.reported == reported_event::idle));
    BOOST_TEST((step(event::due) == kind::none));
    BOOST_TEST((step(event::timer) == kind::none));
    BOOST_TEST((step(event::needed) == kind::connect));
}

BOOST_AUTO_TEST_CASE(demoted_connection_takes_no_requests)
{
    steps step;
    step.open();
    step.plan.demote();
    BOOST_TEST(!step.plan.takes_requests());
    BOOST_TEST(step.plan.open());
    // The owner closes the connection when no request is in flight.
    BOOST_TEST((step(event::lost) == kind::wait));
    BOOST_TEST((step(event::due) == kind::connect));
    BOOST_TEST(!step.plan.demoted());
    static_cast<void>(step(event::opened));
    BOOST_TEST((step.reported == reported_event::up));
    BOOST_TEST(step.plan.takes_requests());
}

BOOST_AUTO_TEST_CASE(unused_connection_is_closed_after_its_timeout_without_a_loss)
{
    steps step(10s);
    step.open();
    step.now = start + 9s;
    BOOST_TEST((step(event::timer, {.needed = false, .has_in_flight = false, .used = true}) == kind::none));
    step.now = start + 18s;
    BOOST_TEST((step(event::timer, unneeded) == kind::none));
    step.now = start + 19s;
    BOOST_TEST((step(event::timer, queued) == kind::none));
    BOOST_TEST((step(event::timer, unneeded) == kind::disconnect));
    BOOST_TEST((step.reported == reported_event::idle));
    BOOST_TEST((step(event::needed) == kind::connect));
    BOOST_TEST((step.reported == reported_event::connecting));
    static_cast<void>(step(event::opened));
    BOOST_TEST((step.reported == reported_event::up));
}

BOOST_AUTO_TEST_CASE(idle_timeout_of_zero_closes_at_once_and_maximum_never)
{
    steps at_once(0s);
    at_once.open();
    BOOST_TEST((at_once(event::timer, unneeded) == kind::none));
    at_once.now += 10ms;
    BOOST_TEST((at_once(event::timer, unneeded) == kind::disconnect));

    steps never(lease_clock::duration::max());
    never.open();
    never.now += 1000h;
    BOOST_TEST((never(event::timer, unneeded) == kind::none));
    BOOST_TEST((never.timer_delay() == lease_clock::duration::max()));
    never.plan.retire();
    BOOST_TEST((never.timer_delay() == 10ms));
    BOOST_TEST((never(event::timer, unneeded) == kind::disconnect));
}

BOOST_AUTO_TEST_CASE(unneeded_attempt_continues_for_one_second)
{
    steps step;
    BOOST_TEST((step(event::timer, {.needed = true, .has_in_flight = false, .used = true}) == kind::none));
    BOOST_TEST((step(event::needed) == kind::connect));
    step.now = start + 900ms;
    BOOST_TEST((step(event::timer, unneeded) == kind::none));
    BOOST_TEST((step.timer_delay() == 1s));
    step.now = start + 1s;
    BOOST_TEST((step(event::timer, unneeded) == kind::disconnect));
    // The delay before the next attempt is also ended.
    BOOST_TEST((step(event::needed) == kind::connect));
    BOOST_TEST((step(event::failed) == kind::wait));
    BOOST_TEST((step(event::timer, unneeded) == kind::disconnect));
    BOOST_TEST((step(event::due) == kind::none));
}

BOOST_AUTO_TEST_CASE(closed_connection_ends_when_it_is_not_needed)
{
    for (const bool open : {true, false}) {
        steps step;
        BOOST_TEST((step(event::timer, {.needed = true, .has_in_flight = false, .used = true}) == kind::none));
        static_cast<void>(step(event::needed));
        if (open)
            static_cast<void>(step(event::opened));
        step.plan.close(start + 1s);
        BOOST_TEST((step(event::timer, queued) == kind::none));
        BOOST_TEST(!step.plan.finish_close(step.now, {.others_open = false}));
        BOOST_TEST((step(event::timer, unneeded) == kind::disconnect));
        BOOST_TEST(!step.plan.finish_close(step.now, {.others_open = true}));
        BOOST_TEST(step.plan.finish_close(step.now, {.others_open = false}));
    }
}

BOOST_AUTO_TEST_CASE(close_completes_at_its_deadline_after_all_other_completions)
{
    steps step;
    step.open();
    step.plan.close(start + 2s);
    step.plan.close(start + 1s);
    step.plan.close(start + 3s);
    step.now = start + 999ms;
    BOOST_TEST(!step.plan.out_of_time(step.now));
    step.now = start + 1s;
    BOOST_TEST(step.plan.out_of_time(step.now));
    BOOST_TEST((step(event::given_up, busy) == kind::none));
    BOOST_TEST(!step.plan.finish_close(step.now, {.others_open = false, .has_pending_completions = true}));
    // The end of the connection is not reported as a loss.
    BOOST_TEST((step(event::lost, busy) == kind::none));
    BOOST_TEST((step.reported == reported_event::idle));
    BOOST_TEST((step(event::drained, unneeded) == kind::disconnect));
    BOOST_TEST(step.plan.finish_close(step.now, {.others_open = true}));
    // The next close has its own deadline.
    BOOST_TEST(!step.plan.out_of_time(step.now + 1000h));
}

BOOST_AUTO_TEST_CASE(connection_is_kept_again_after_a_cancelled_close_only)
{
    steps step;
    step.open();
    step.plan.close(start + 1s);
    BOOST_TEST((step(event::timer, unneeded) == kind::disconnect));
    // The connection is established again during the close, for example for a caller that waits for events.
    BOOST_TEST((step(event::needed) == kind::connect));
    static_cast<void>(step(event::opened));
    BOOST_TEST((step(event::timer, unneeded) == kind::disconnect));
    BOOST_TEST(step.plan.finish_close(step.now, {.others_open = false}));
    // A body that outlasts the shutdown of its locker releases its lock.
    step.open();
    BOOST_TEST((step(event::timer, busy) == kind::none));
    BOOST_TEST((step(event::timer, unneeded) == kind::disconnect));
    BOOST_TEST((step.timer_delay() == std::nullopt));
    step.plan.cancel_close();
    step.open();
    BOOST_TEST((step(event::timer, unneeded) == kind::none));
}

BOOST_AUTO_TEST_CASE(cancelled_close_keeps_the_connection)
{
    steps step;
    step.open();
    step.plan.close(start + 1s);
    step.plan.cancel_close();
    BOOST_TEST(!step.plan.closes());
    BOOST_TEST(!step.plan.out_of_time(step.now + 1000h));
    BOOST_TEST((step(event::timer, unneeded) == kind::none));
}

BOOST_AUTO_TEST_CASE(request_during_a_close_does_not_keep_the_connection)
{
    steps step;
    step.open();
    step.plan.close(start + 1h);
    BOOST_TEST((step(event::timer, busy) == kind::none));
    BOOST_TEST(!step.plan.finish_close(step.now, {.others_open = false}));
    BOOST_TEST((step(event::timer, unneeded) == kind::disconnect));
    BOOST_TEST(step.plan.finish_close(step.now, {.others_open = false}));
}

BOOST_AUTO_TEST_CASE(timer_delay_matches_the_next_deadline)
{
    steps step(10s);
    // No timer is needed, so the event loop can run out of work.
    BOOST_TEST((step.timer_delay() == std::nullopt));
    BOOST_TEST((step.timer_delay({.others_open = true}) == 10s));
    BOOST_TEST((step.timer_delay({.others_open = false}, queued) == 77ms));
    BOOST_TEST((step.timer_delay({.others_open = false, .closing = true}) == 77ms));
    static_cast<void>(step(event::needed));
    BOOST_TEST((step.timer_delay() == 1s));
    static_cast<void>(step(event::opened));
    BOOST_TEST((step.timer_delay() == 10s));
    BOOST_TEST((step.timer_delay({.others_open = false}, busy) == 77ms));
    step.plan.retire();
    BOOST_TEST((step.timer_delay() == 10ms));
    step.plan.close(start + 1s);
    BOOST_TEST((step.timer_delay() == 77ms));
    steps patient(24h);
    patient.open();
    BOOST_TEST((patient.timer_delay() == 60s));
}

BOOST_AUTO_TEST_CASE(several_connections_are_reported_as_one)
{
    remote::connection_events all;
    connection_plan one(10s, all), two(10s, all);
    const auto reported = [](connection_plan& plan, event input, connection_plan::demand demand = queued) {
        return plan.resume(start, input, demand).report;
    };
    BOOST_TEST((reported(one, event::needed) == reported_event::connecting));
    BOOST_TEST((reported(two, event::needed) == reported_event::connecting));
    BOOST_TEST((reported(one, event::opened) == reported_event::up));
    // As long as one connection is open, no loss is reported.
    BOOST_TEST((reported(two, event::failed) == reported_event::none));
    static_cast<void>(reported(two, event::due));
    BOOST_TEST((reported(two, event::opened) == reported_event::none));
    BOOST_TEST((reported(one, event::lost) == reported_event::none));
    BOOST_TEST((reported(two, event::silent) == reported_event::lost));
    static_cast<void>(reported(one, event::due));
    static_cast<void>(reported(two, event::due));
    BOOST_TEST((reported(one, event::failed) == reported_event::failed));
    BOOST_TEST((reported(two, event::opened) == reported_event::up));
    static_cast<void>(reported(one, event::due));
    BOOST_TEST((reported(one, event::opened) == reported_event::none));
    // A connection that was closed because it was unused is not counted any more.
    one.close(start);
    BOOST_TEST((reported(one, event::timer, unneeded) == reported_event::none));
    BOOST_TEST(one.idle());
    BOOST_TEST((reported(two, event::lost) == reported_event::lost));
}

BOOST_AUTO_TEST_CASE(failure_during_the_back_off_is_reported_and_starts_no_second_back_off)
{
    steps step;
    step.open();
    BOOST_TEST((step(event::lost) == kind::wait));
    BOOST_TEST((step.reported == reported_event::lost));
    BOOST_TEST((step(event::failed) == kind::none));
    BOOST_TEST((step.reported == reported_event::failed));
    BOOST_TEST(step.is_in(phase::waiting));
}

BOOST_AUTO_TEST_CASE(refusal_is_tolerated_for_a_minute_if_the_server_has_accepted_a_connection_before)
{
    steps step;
    step.open();
    BOOST_TEST(!step.plan.tolerates_refusal(step.now));
    step.plan.note_accepted();
    static_cast<void>(step(event::lost));
    step.now += 1h;
    BOOST_TEST(step.plan.tolerates_refusal(step.now));
    step.now += 1min - 1ms;
    BOOST_TEST(step.plan.tolerates_refusal(step.now));
    step.now += 1ms;
    BOOST_TEST(!step.plan.tolerates_refusal(step.now));
    step.now += 1h;
    BOOST_TEST(!step.plan.tolerates_refusal(step.now));

    // Only a user that is accepted starts another minute, not a connection that is open.
    static_cast<void>(step(event::refused));
    step.open();
    BOOST_TEST(!step.plan.tolerates_refusal(step.now));
    step.plan.note_accepted();
    BOOST_TEST(step.plan.tolerates_refusal(step.now));
}

BOOST_AUTO_TEST_CASE(attempt_after_many_tolerated_refusals_waits_longer_than_after_the_first)
{
    steps step;
    step.open();
    step.plan.note_accepted();
    static_cast<void>(step(event::lost));
    static_cast<void>(step(event::due));
    for (int refusals = 0; refusals < 6; ++refusals) {
        BOOST_TEST(step.plan.tolerates_refusal(step.now));
        static_cast<void>(step(event::refused));
        step.now += 10ms;
        BOOST_TEST((step(event::needed) == kind::wait));
        BOOST_TEST((refusals > 0 || step.delay < 400ms));
        BOOST_TEST((refusals < 5 || step.delay > 500ms));
        step.now += step.delay;
        BOOST_TEST((step(event::due) == kind::connect));
        // MongoDB opens a connection before the server checks the user.
        static_cast<void>(step(event::opened));
    }
    step.plan.note_accepted();
    BOOST_TEST(step.plan.tolerates_refusal(step.now));
    static_cast<void>(step(event::refused));
    static_cast<void>(step(event::needed));
    BOOST_TEST((step.delay < 200ms));
}

BOOST_AUTO_TEST_SUITE_END()
