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
using news = remote::connection_events::item;
using phase = connection_plan::phase;
constexpr lease_clock::time_point start{std::chrono::hours(100)};
constexpr connection_plan::demand busy{.needed = true, .under_way = true};
constexpr connection_plan::demand queued{.needed = true, .under_way = false};
constexpr connection_plan::demand nobody{.needed = false, .under_way = false};

/// A plan, and what it answered last.
struct steps
{
    explicit steps(lease_clock::duration idle_timeout = 10s) : plan(idle_timeout, told) {}

    kind operator()(event what, connection_plan::demand by = queued)
    {
        const auto next = plan.next(now, what, by);
        said = next.say;
        delay = next.delay;
        return next.what;
    }
    void open()
    {
        static_cast<void>((*this)(event::wanted));
        static_cast<void>((*this)(event::opened));
    }
    [[nodiscard]] std::optional<lease_clock::duration> turns(
        connection_plan::surroundings beside = {.others_open = false}, connection_plan::demand by = nobody) const
    {
        return plan.turns_again_in(by, beside, 77ms);
    }
    [[nodiscard]] bool is_in(phase expected) const { return plan.current() == expected; }

    remote::connection_events told;
    connection_plan plan;
    lease_clock::time_point now = start;
    news said = news::none;
    lease_clock::duration delay{};
};

} // namespace

BOOST_AUTO_TEST_CASE(it_connects_when_somebody_wants_something_and_not_before)
{
    steps step;
    BOOST_TEST(step.is_in(phase::idle));
    BOOST_TEST((step(event::turn, nobody) == kind::none));
    BOOST_TEST((step(event::wanted) == kind::connect));
    // Once.
    BOOST_TEST((step(event::wanted) == kind::none));
    BOOST_TEST((step(event::opened) == kind::none));
    BOOST_TEST((step.said == news::ready));
    BOOST_TEST((step(event::wanted) == kind::none));
    BOOST_TEST(step.plan.takes_requests());
}

BOOST_AUTO_TEST_CASE(end_of_an_attempt_that_nobody_wants_is_told)
{
    for (const auto how : {event::turn, event::refused}) {
        steps step;
        static_cast<void>(step(event::wanted));
        BOOST_TEST((step.said == news::connecting));
        step.now += 2s;
        BOOST_TEST((step(how, nobody) == kind::rest));
        BOOST_TEST((step.said == news::connecting_ended));
        // There is nothing to tell of one that is closed.
        step.open();
        step.plan.close(step.now);
        BOOST_TEST((step(event::turn, nobody) == kind::rest));
        BOOST_TEST((step.said == news::none));
    }
}

BOOST_AUTO_TEST_CASE(refused_open_connection_is_closed_without_a_loss)
{
    steps step;
    step.open();
    BOOST_TEST((step(event::refused, nobody) == kind::rest));
    BOOST_TEST((step.said == news::none));
    BOOST_TEST(step.is_in(phase::idle));
    // The refused connection is not counted any more: the next one that is lost is the last.
    step.open();
    static_cast<void>(step(event::lost));
    BOOST_TEST((step.said == news::suspended));
}

BOOST_AUTO_TEST_CASE(a_loss_and_its_end_are_told_once_each)
{
    steps step;
    step.open();
    BOOST_TEST((step.said == news::ready));
    for (int round = 0; round < 3; ++round) {
        BOOST_TEST((step(event::lost) == kind::wait));
        BOOST_TEST((step.said == news::suspended));
        for (int attempt = 0; attempt < 3; ++attempt) {
            BOOST_TEST((step(event::due) == kind::connect));
            BOOST_TEST((step(attempt == 1 ? event::lost : event::failed) == kind::wait));
            BOOST_TEST((step.said == news::unreachable));
        }
        BOOST_TEST((step(event::due) == kind::connect));
        BOOST_TEST((step(event::opened) == kind::none));
        BOOST_TEST((step.said == news::reconnected));
    }
}

BOOST_AUTO_TEST_CASE(before_it_was_ever_ready_nothing_is_a_reconnect)
{
    steps step;
    static_cast<void>(step(event::wanted));
    BOOST_TEST((step(event::failed) == kind::wait));
    BOOST_TEST((step.said == news::unreachable));
    BOOST_TEST((step(event::due) == kind::connect));
    static_cast<void>(step(event::opened));
    BOOST_TEST((step.said == news::ready));
}

BOOST_AUTO_TEST_CASE(who_hears_that_it_cannot_be_reached_hears_when_it_can)
{
    steps step;
    step.open();
    // Closed without a loss.
    step.plan.close(start + 1s);
    BOOST_TEST((step(event::turn, nobody) == kind::rest));
    BOOST_TEST((step.said == news::none));
    BOOST_TEST((step(event::wanted) == kind::connect));
    BOOST_TEST((step(event::failed) == kind::wait));
    BOOST_TEST((step(event::due) == kind::connect));
    static_cast<void>(step(event::opened));
    BOOST_TEST((step.said == news::reconnected));
}

BOOST_AUTO_TEST_CASE(the_next_is_made_when_all_that_was_under_way_has_been_told)
{
    steps step;
    step.open();
    BOOST_TEST((step(event::lost, busy) == kind::none));
    BOOST_TEST((step.said == news::suspended));
    BOOST_TEST(!step.plan.takes_requests());
    BOOST_TEST((step(event::wanted) == kind::none));
    BOOST_TEST((step(event::turn, busy) == kind::none));
    BOOST_TEST((step(event::told) == kind::wait));
    BOOST_TEST((step.said == news::none));
    // Told once more.
    BOOST_TEST((step(event::told) == kind::none));
}

BOOST_AUTO_TEST_CASE(it_waits_longer_after_each_failure_and_not_at_all_after_silence)
{
    steps step;
    static_cast<void>(step(event::wanted));
    for (const auto middle : {100ms, 200ms, 400ms, 800ms, 1600ms, 1600ms}) {
        BOOST_TEST((step(event::failed) == kind::wait));
        BOOST_TEST((step.delay >= middle / 2 && step.delay <= middle * 3 / 2));
        BOOST_TEST((step(event::due) == kind::connect));
    }
    static_cast<void>(step(event::opened));
    BOOST_TEST((step(event::silent, busy) == kind::none));
    BOOST_TEST((step(event::told) == kind::wait));
    BOOST_TEST((step.delay == 0ns));
    BOOST_TEST((step(event::due) == kind::connect));
    // Once; and a connection that stood has begun the count anew.
    BOOST_TEST((step(event::failed) == kind::wait));
    BOOST_TEST((step.delay >= 50ms && step.delay <= 150ms));
}

BOOST_AUTO_TEST_CASE(nothing_is_made_again_for_nobody)
{
    for (const auto how : {event::failed, event::lost}) {
        steps step;
        static_cast<void>(step(event::wanted));
        BOOST_TEST((step(how, nobody) == kind::rest));
        BOOST_TEST((step.said == news::unreachable));
        BOOST_TEST(step.is_in(phase::idle));
    }
    steps step;
    step.open();
    BOOST_TEST((step(event::lost, nobody) == kind::rest));
    BOOST_TEST((step.said == news::suspended));
    BOOST_TEST((step(event::wanted) == kind::connect));
    static_cast<void>(step(event::failed));
    BOOST_TEST((step(event::due, nobody) == kind::rest));
    // A timer that fires late.
    BOOST_TEST((step(event::due) == kind::none));
    BOOST_TEST(step.is_in(phase::idle));
}

BOOST_AUTO_TEST_CASE(a_refusal_ends_the_attempts_until_somebody_wants_it_again)
{
    steps step;
    static_cast<void>(step(event::wanted));
    BOOST_TEST((step(event::refused) == kind::rest));
    BOOST_TEST((step.said == news::connecting_ended));
    BOOST_TEST((step(event::due) == kind::none));
    BOOST_TEST((step(event::turn) == kind::none));
    BOOST_TEST((step(event::wanted) == kind::connect));
}

BOOST_AUTO_TEST_CASE(one_that_should_not_be_used_takes_no_requests)
{
    steps step;
    step.open();
    step.plan.demote();
    BOOST_TEST(!step.plan.takes_requests());
    BOOST_TEST(step.plan.open());
    // The owner closes it once nothing is under way.
    BOOST_TEST((step(event::lost) == kind::wait));
    BOOST_TEST((step(event::due) == kind::connect));
    BOOST_TEST(!step.plan.demoted());
    static_cast<void>(step(event::opened));
    BOOST_TEST((step.said == news::reconnected));
    BOOST_TEST(step.plan.takes_requests());
}

BOOST_AUTO_TEST_CASE(an_unused_one_is_closed_after_its_time_and_that_is_no_loss)
{
    steps step(10s);
    step.open();
    step.now = start + 9s;
    BOOST_TEST((step(event::turn, {.needed = false, .under_way = false, .used = true}) == kind::none));
    step.now = start + 18s;
    BOOST_TEST((step(event::turn, nobody) == kind::none));
    step.now = start + 19s;
    BOOST_TEST((step(event::turn, queued) == kind::none));
    BOOST_TEST((step(event::turn, nobody) == kind::rest));
    BOOST_TEST((step.said == news::none));
    BOOST_TEST((step(event::wanted) == kind::connect));
    BOOST_TEST((step.said == news::connecting));
    static_cast<void>(step(event::opened));
    BOOST_TEST((step.said == news::connecting_ended));
}

BOOST_AUTO_TEST_CASE(without_an_idle_timeout_it_is_closed_at_once_and_never_with_the_longest)
{
    steps at_once(0s);
    at_once.open();
    BOOST_TEST((at_once(event::turn, nobody) == kind::none));
    at_once.now += 10ms;
    BOOST_TEST((at_once(event::turn, nobody) == kind::rest));

    steps never(lease_clock::duration::max());
    never.open();
    never.now += 1000h;
    BOOST_TEST((never(event::turn, nobody) == kind::none));
    BOOST_TEST((never.turns() == lease_clock::duration::max()));
    never.plan.retire();
    BOOST_TEST((never.turns() == 10ms));
    BOOST_TEST((never(event::turn, nobody) == kind::rest));
}

BOOST_AUTO_TEST_CASE(one_that_is_being_made_for_nobody_is_given_a_second)
{
    steps step;
    BOOST_TEST((step(event::turn, {.needed = true, .under_way = false, .used = true}) == kind::none));
    BOOST_TEST((step(event::wanted) == kind::connect));
    step.now = start + 900ms;
    BOOST_TEST((step(event::turn, nobody) == kind::none));
    BOOST_TEST((step.turns() == 1s));
    step.now = start + 1s;
    BOOST_TEST((step(event::turn, nobody) == kind::rest));
    // And none is waited for.
    BOOST_TEST((step(event::wanted) == kind::connect));
    BOOST_TEST((step(event::failed) == kind::wait));
    BOOST_TEST((step(event::turn, nobody) == kind::rest));
    BOOST_TEST((step(event::due) == kind::none));
}

BOOST_AUTO_TEST_CASE(after_a_close_it_ends_as_soon_as_nobody_needs_it)
{
    for (const bool open : {true, false}) {
        steps step;
        BOOST_TEST((step(event::turn, {.needed = true, .under_way = false, .used = true}) == kind::none));
        static_cast<void>(step(event::wanted));
        if (open)
            static_cast<void>(step(event::opened));
        step.plan.close(start + 1s);
        BOOST_TEST((step(event::turn, queued) == kind::none));
        BOOST_TEST(!step.plan.finish_close(step.now, {.others_open = false}));
        BOOST_TEST((step(event::turn, nobody) == kind::rest));
        BOOST_TEST(!step.plan.finish_close(step.now, {.others_open = true}));
        BOOST_TEST(step.plan.finish_close(step.now, {.others_open = false}));
    }
}

BOOST_AUTO_TEST_CASE(whoever_closes_is_told_when_its_time_is_over_but_not_before_the_others)
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
    // Its end is no news.
    BOOST_TEST((step(event::lost, busy) == kind::none));
    BOOST_TEST((step.said == news::none));
    BOOST_TEST((step(event::told, nobody) == kind::rest));
    BOOST_TEST(step.plan.finish_close(step.now, {.others_open = true}));
    // The next close has its own time.
    BOOST_TEST(!step.plan.out_of_time(step.now + 1000h));
}

BOOST_AUTO_TEST_CASE(whoever_uses_it_after_a_close_has_it_as_before)
{
    steps step;
    step.open();
    step.plan.close(start + 1s);
    BOOST_TEST((step(event::turn, nobody) == kind::rest));
    // Whoever listens still is no reason to stay.
    BOOST_TEST((step(event::wanted) == kind::connect));
    BOOST_TEST(step.plan.closes());
    static_cast<void>(step(event::opened));
    // The close has not ended yet.
    step.plan.reopen();
    BOOST_TEST(step.plan.closes());
    BOOST_TEST((step(event::turn, nobody) == kind::rest));
    BOOST_TEST(step.plan.finish_close(step.now, {.others_open = false}));
    step.open();
    step.plan.reopen();
    BOOST_TEST(!step.plan.closes());
    BOOST_TEST((step(event::turn, nobody) == kind::none));
}

BOOST_AUTO_TEST_CASE(cancelled_close_keeps_the_connection)
{
    steps step;
    step.open();
    step.plan.close(start + 1s);
    step.plan.cancel_close();
    BOOST_TEST(!step.plan.closes());
    BOOST_TEST(!step.plan.out_of_time(step.now + 1000h));
    BOOST_TEST((step(event::turn, nobody) == kind::none));
}

BOOST_AUTO_TEST_CASE(request_during_a_close_does_not_keep_the_connection)
{
    steps step;
    step.open();
    step.plan.close(start + 1h);
    step.plan.reopen();
    BOOST_TEST((step(event::turn, busy) == kind::none));
    BOOST_TEST(!step.plan.finish_close(step.now, {.others_open = false}));
    BOOST_TEST((step(event::turn, nobody) == kind::rest));
    BOOST_TEST(step.plan.finish_close(step.now, {.others_open = false}));
}

BOOST_AUTO_TEST_CASE(a_timer_is_armed_for_as_long_as_it_makes_a_difference)
{
    steps step(10s);
    // The event loop may run out of work.
    BOOST_TEST((step.turns() == std::nullopt));
    BOOST_TEST((step.turns({.others_open = true}) == 10s));
    BOOST_TEST((step.turns({.others_open = false}, queued) == 77ms));
    BOOST_TEST((step.turns({.others_open = false, .closing = true}) == 77ms));
    static_cast<void>(step(event::wanted));
    BOOST_TEST((step.turns() == 1s));
    static_cast<void>(step(event::opened));
    BOOST_TEST((step.turns() == 10s));
    BOOST_TEST((step.turns({.others_open = false}, busy) == 77ms));
    step.plan.retire();
    BOOST_TEST((step.turns() == 10ms));
    step.plan.close(start + 1s);
    BOOST_TEST((step.turns() == 77ms));
    steps patient(24h);
    patient.open();
    BOOST_TEST((patient.turns() == 60s));
}

BOOST_AUTO_TEST_CASE(several_are_told_of_as_one)
{
    remote::connection_events all;
    connection_plan one(10s, all), two(10s, all);
    const auto said = [](connection_plan& plan, event what, connection_plan::demand by = queued) {
        return plan.next(start, what, by).say;
    };
    BOOST_TEST((said(one, event::wanted) == news::connecting));
    BOOST_TEST((said(two, event::wanted) == news::connecting));
    BOOST_TEST((said(one, event::opened) == news::ready));
    // While one stands, nobody is without.
    BOOST_TEST((said(two, event::failed) == news::none));
    static_cast<void>(said(two, event::due));
    BOOST_TEST((said(two, event::opened) == news::none));
    BOOST_TEST((said(one, event::lost) == news::none));
    BOOST_TEST((said(two, event::silent) == news::suspended));
    static_cast<void>(said(one, event::due));
    static_cast<void>(said(two, event::due));
    BOOST_TEST((said(one, event::failed) == news::unreachable));
    BOOST_TEST((said(two, event::opened) == news::reconnected));
    static_cast<void>(said(one, event::due));
    BOOST_TEST((said(one, event::opened) == news::none));
    // One that is closed for being unused counts no more.
    one.close(start);
    BOOST_TEST((said(one, event::turn, nobody) == news::none));
    BOOST_TEST(one.idle());
    BOOST_TEST((said(two, event::lost) == news::suspended));
}

BOOST_AUTO_TEST_CASE(failure_during_the_back_off_is_told_and_starts_no_second_one)
{
    steps step;
    step.open();
    BOOST_TEST((step(event::lost) == kind::wait));
    BOOST_TEST((step.said == news::suspended));
    BOOST_TEST((step(event::failed) == kind::none));
    BOOST_TEST((step.said == news::unreachable));
    BOOST_TEST(step.is_in(phase::waiting));
}

BOOST_AUTO_TEST_CASE(a_forked_child_begins_anew_and_tells_of_nothing)
{
    steps step;
    step.open();
    step.plan.demote();
    BOOST_TEST((step(event::forked, busy) == kind::none));
    BOOST_TEST((step.said == news::none));
    BOOST_TEST(step.is_in(phase::idle));
    // What the parent's connection does is nothing to it.
    BOOST_TEST((step(event::lost) == kind::none));
    BOOST_TEST((step(event::told) == kind::none));
    BOOST_TEST((step(event::wanted) == kind::connect));
    static_cast<void>(step(event::opened));
    BOOST_TEST((step.said == news::ready));
    BOOST_TEST(step.plan.takes_requests());
}

BOOST_AUTO_TEST_SUITE_END()
