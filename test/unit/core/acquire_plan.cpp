// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/policy/acquire_plan.hpp"

#include "core/policy/answer_times.hpp"
#include "core/policy/retry_schedule.hpp"

#include <colock/retry_policy.hpp>

#include <boost/test/unit_test.hpp>

#include <ostream>

using namespace colock;
using namespace std::chrono_literals;
using colock::detail::acquire_plan;
using colock::detail::retry_schedule;

namespace colock::inline v0::detail {

std::ostream& operator<<(std::ostream& out, acquire_plan::action what)
{
    constexpr const char* names[] = {"await_answer", "send", "count", "yield", "wait", "give_up"};
    return out << names[static_cast<unsigned>(what)];
}

} // namespace colock::inline v0::detail

BOOST_AUTO_TEST_SUITE(attempts)

namespace {

using action = acquire_plan::action;
using time_point = lease_clock::time_point;
constexpr time_point start{1000h};
constexpr auto never = time_point::max();

constexpr acquire_plan::view head{.is_head = true, .has_events = true};
constexpr acquire_plan::view behind{.has_events = true};

/// An acquire with a policy; times are relative to its start.
struct acquire
{
    retry_policy policy;
    retry_schedule schedule{policy, start};
    acquire_plan plan{};

    acquire_plan::decision after(lease_clock::duration span, acquire_plan::view seen = head) const
    {
        return plan.next(start + span, seen, schedule);
    }
    /// Sends an attempt that is answered busy. It counts if the policy's delay is over.
    void busy_at(lease_clock::duration span, time_point expires = never)
    {
        static_cast<void>(plan.on_sent(start + span >= schedule.next_at()));
        if (plan.on_busy(start + span, 1ms, expires))
            BOOST_TEST(schedule.on_failed(start + span));
    }
    void fails_at(lease_clock::duration span)
    {
        static_cast<void>(plan.on_sent(start + span >= schedule.next_at()));
        BOOST_TEST(plan.on_failed(start + span, false));
        BOOST_TEST(schedule.on_failed(start + span));
    }
    /// Sends an attempt that fails. Returns true if it counts.
    bool fails_in_doubt_at(lease_clock::duration span, bool in_doubt = true)
    {
        static_cast<void>(plan.on_sent(start + span >= schedule.next_at()));
        const bool counts = plan.on_failed(start + span, in_doubt);
        if (counts)
            BOOST_TEST(schedule.on_failed(start + span));
        plan.begin_wait(false);
        return counts;
    }
};

retry_policy every_two_seconds()
{
    return retry_policy::fixed(2s).jitter(0);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_head_tries_at_once)
{
    const acquire one{every_two_seconds()};
    BOOST_TEST(one.after(0s).kind == action::send);
    BOOST_TEST(one.after(0s).counts);
}

BOOST_AUTO_TEST_CASE(failed_attempt_is_repeated_when_contact_is_regained)
{
    acquire one{every_two_seconds()};
    one.fails_at(0s);
    one.plan.begin_wait(false);
    BOOST_TEST(one.after(1s).kind == action::wait);
    BOOST_TEST(one.plan.on_contact_regained(false));
    BOOST_TEST(one.after(1s).kind == action::send);
    BOOST_TEST(!one.after(1s).counts);
    one.busy_at(1s);
    BOOST_TEST(!one.plan.on_contact_regained(true));
    one.plan.begin_wait(true);
    BOOST_TEST(!one.plan.on_contact_regained(false));
    BOOST_TEST(one.after(1s).kind == action::wait);
    // The event that the acquire waits for may have been missed.
    BOOST_TEST(one.plan.on_contact_regained(true));
    BOOST_TEST(one.after(1s).kind == action::send);
}

BOOST_AUTO_TEST_CASE(acquire_that_has_not_waited_tries_once_even_after_its_deadline)
{
    const acquire one{every_two_seconds().total_time(0s)};
    BOOST_TEST(one.after(1s).kind == action::send);
    acquire other{every_two_seconds().total_time(0s)};
    other.plan.begin_wait(false);
    BOOST_TEST(other.after(1s).kind == action::give_up);
}

BOOST_AUTO_TEST_CASE(after_a_busy_answer_a_head_waits_for_the_delay_the_expiry_or_the_end_of_its_time)
{
    acquire one{every_two_seconds().total_time(3s)};
    one.busy_at(0s);
    BOOST_TEST(one.after(1s).kind == action::wait);
    BOOST_TEST((one.after(1s).until == start + 2s));
    one.plan.begin_wait(true);
    BOOST_TEST(one.after(2s).kind == action::send);
    BOOST_TEST(one.after(2s).counts);

    one.busy_at(2s);
    BOOST_TEST((one.after(2s + 1ms).until == start + 3s));
    one.plan.begin_wait(true);
    BOOST_TEST(one.after(3s).kind == action::give_up);

    acquire expiring{every_two_seconds()};
    expiring.busy_at(0s, start + 500ms);
    BOOST_TEST((expiring.after(1ms).until == start + 500ms));
    expiring.plan.begin_wait(true);
    BOOST_TEST(expiring.after(500ms).kind == action::send);
    BOOST_TEST(!expiring.after(500ms).counts);
}

BOOST_AUTO_TEST_CASE(earlier_expiry_applies_to_the_answered_attempt)
{
    acquire one{every_two_seconds()};
    one.busy_at(0s, start + 1s);
    one.plan.on_earlier_expiry(start + 300ms);
    one.plan.on_earlier_expiry(start + 400ms);
    BOOST_TEST((one.after(1ms).until == start + 300ms));
    one.plan.begin_wait(true);
    one.busy_at(300ms);
    BOOST_TEST((one.after(301ms).until == start + 2s));
    // An expiry reported while the attempt was in flight also applies to its answer.
    one.plan.begin_wait(true);
    static_cast<void>(one.plan.on_sent(false));
    one.plan.on_earlier_expiry(start + 700ms);
    static_cast<void>(one.plan.on_busy(start, 1ms, start + 1s));
    BOOST_TEST((one.after(500ms).until == start + 700ms));
}

BOOST_AUTO_TEST_CASE(notified_head_tries_again_without_counting)
{
    acquire one{every_two_seconds()};
    one.busy_at(0s);
    one.plan.begin_wait(true);
    one.plan.on_release();
    BOOST_TEST(one.after(1ms).kind == action::send);
    BOOST_TEST(!one.after(1ms).counts);
    // The policy's own attempt has become due meanwhile.
    BOOST_TEST(one.after(2s).counts);
    // A notification is valid for one attempt.
    one.busy_at(1ms);
    BOOST_TEST(one.after(2ms).kind == action::wait);
}

BOOST_AUTO_TEST_CASE(after_an_error_only_time_helps)
{
    acquire one{every_two_seconds()};
    one.fails_at(0s);
    BOOST_TEST(!one.after(1ms).listens);
    one.plan.begin_wait(false);
    one.plan.on_release();
    BOOST_TEST(one.after(1ms).kind == action::wait);
    BOOST_TEST(one.after(2s).kind == action::send);
}

BOOST_AUTO_TEST_CASE(unknown_outcome_is_checked_soon_and_without_counting)
{
    acquire one{retry_policy::fixed(10min).jitter(0)};
    BOOST_TEST(one.fails_in_doubt_at(0s));
    auto now = 0s;
    for (const auto pause : {1s, 2s, 4s, 8s, 16s, 32s, 64s, 64s}) {
        BOOST_TEST((one.after(now).until == start + now + pause));
        BOOST_TEST(!one.after(now).listens);
        // The event source may be broken, too.
        one.plan.on_release();
        BOOST_TEST(one.after(now + pause - 1ms).kind == action::wait);
        now += pause;
        BOOST_TEST(one.after(now).kind == action::send);
        BOOST_TEST(!one.after(now).counts);
        // The outcome stays in doubt if the backend cannot be reached meanwhile.
        BOOST_TEST(!one.fails_in_doubt_at(now, pause == 2s));
    }
    BOOST_TEST(one.schedule.attempts() == 1U);
    // The policy's own attempts are made and counted as before.
    BOOST_TEST(one.after(10min).counts);

    // An answer ends the doubt.
    auto found = one;
    static_cast<void>(found.plan.on_sent(false));
    BOOST_TEST(!found.plan.on_busy(start + 300s, 1ms, never));
    BOOST_TEST(found.after(300s).listens);
    BOOST_TEST((found.after(300s).until == start + 10min));
    // After an attempt of the policy, the next check comes as soon as after the first attempt.
    auto tried_again = one;
    BOOST_TEST(tried_again.fails_in_doubt_at(10min, false));
    BOOST_TEST((tried_again.after(10min).until == start + 10min + 1s));
}

BOOST_AUTO_TEST_CASE(failure_without_an_effect_uses_the_delay_of_the_policy)
{
    acquire one{retry_policy::fixed(10min).jitter(0)};
    BOOST_TEST(one.fails_in_doubt_at(0s, false));
    BOOST_TEST((one.after(0s).until == start + 10min));
    // A shorter delay has precedence.
    acquire quick{retry_policy::fixed(300ms).jitter(0)};
    BOOST_TEST(quick.fails_in_doubt_at(0s));
    BOOST_TEST((quick.after(0s).until == start + 300ms));
    BOOST_TEST(quick.after(300ms).counts);
}

BOOST_AUTO_TEST_CASE(acquire_without_a_suspension_since_the_answer_yields)
{
    acquire one{retry_policy::fixed(0s).jitter(0)};
    one.busy_at(0s);
    BOOST_TEST(one.after(0s).kind == action::yield);
    one.plan.on_yielded();
    BOOST_TEST(one.after(0s).kind == action::send);
}

BOOST_AUTO_TEST_CASE(waiter_behind_the_head_counts_without_requests)
{
    acquire finite{every_two_seconds().times(3)};
    BOOST_TEST(finite.after(0s, behind).kind == action::count_attempt);
    BOOST_TEST(finite.after(0s, behind).yields);
    BOOST_TEST(finite.schedule.on_failed(start));
    const auto then = finite.after(1s, behind);
    BOOST_TEST(then.kind == action::wait);
    BOOST_TEST(!then.listens);
    BOOST_TEST((then.until == start + 2s));

    const acquire endless{every_two_seconds()};
    BOOST_TEST(endless.after(10s, behind).kind == action::wait);
    BOOST_TEST((endless.after(10s, behind).until == never));

    acquire bounded{every_two_seconds().total_time(1s)};
    BOOST_TEST(bounded.schedule.on_failed(start));
    BOOST_TEST((bounded.after(0s, behind).until == start + 1s));
    BOOST_TEST(bounded.after(1s, behind).kind == action::give_up);
}

BOOST_AUTO_TEST_CASE(waiter_behind_a_local_holder_counts_one_attempt_without_a_request)
{
    acquire one{every_two_seconds().times(5)};
    auto seen = head;
    seen.held_here_until = start + 1s;
    BOOST_TEST(one.after(0s, seen).kind == action::count_attempt);
    BOOST_TEST(!one.after(0s, seen).yields);
    BOOST_TEST(one.schedule.on_failed(start));
    BOOST_TEST(one.after(0s, seen).kind == action::wait);
    BOOST_TEST(!one.after(0s, seen).listens);
    BOOST_TEST((one.after(0s, seen).until == start + 1s));
    one.plan.begin_wait(false);
    // The lock has expired, or was released.
    BOOST_TEST(one.after(1s, seen).kind == action::send);
    one.plan.on_release();
    BOOST_TEST(one.after(1ms, seen).kind == action::send);
    // The policy's own attempts are made nevertheless.
    acquire longer{every_two_seconds().times(5)};
    seen.held_here_until = start + 10s;
    BOOST_TEST(longer.schedule.on_failed(start));
    BOOST_TEST((longer.after(0s, seen).until == start + 2s));
    BOOST_TEST(longer.after(2s, seen).kind == action::send);
}

BOOST_AUTO_TEST_CASE(waiter_yields_to_other_lockers)
{
    acquire one{every_two_seconds()};
    auto seen = head;
    seen.leave_to_others_until = start + 5ms;
    BOOST_TEST(one.after(0s, seen).kind == action::send);
    one.busy_at(0s);
    one.plan.begin_wait(true);
    one.plan.on_release();
    BOOST_TEST(one.after(1ms, seen).kind == action::wait);
    BOOST_TEST((one.after(1ms, seen).until == start + 5ms));
    BOOST_TEST(one.after(5ms, seen).kind == action::send);
}

BOOST_AUTO_TEST_CASE(first_attempt_that_was_counted_already_does_not_count_again)
{
    acquire one{retry_policy::fixed(0s)};
    one.plan.mark_first_as_counted();
    BOOST_TEST(one.after(0s).kind == action::send);
    BOOST_TEST(!one.after(0s).counts);
    static_cast<void>(one.plan.on_sent(false));
    BOOST_TEST(!one.plan.on_busy(start, 1ms, never));
    one.plan.on_yielded();
    BOOST_TEST(one.after(1ms).kind == action::send);
    BOOST_TEST(one.after(1ms).counts);
}

BOOST_AUTO_TEST_CASE(an_unanswered_attempt_is_waited_for_until_the_end_of_its_time)
{
    acquire one{every_two_seconds().total_time(3s)};
    static_cast<void>(one.plan.on_sent(true));
    auto seen = head;
    seen.unanswered = true;
    one.plan.on_release();
    BOOST_TEST(one.after(2s, seen).kind == action::await_answer);
    BOOST_TEST((one.after(2s, seen).until == start + 3s));
    BOOST_TEST(one.after(3s, seen).kind == action::give_up);
}

BOOST_AUTO_TEST_CASE(a_wait_at_the_backend_is_begun_once_and_ended_once)
{
    acquire one{every_two_seconds()};
    one.busy_at(0s);
    BOOST_TEST(one.after(1ms).listens);
    const auto first = one.plan.begin_wait(true);
    BOOST_TEST(!one.after(1ms).listens);
    BOOST_TEST(one.plan.on_sent(false));
    BOOST_TEST(!one.plan.end_wait(first));
    BOOST_TEST(one.plan.on_busy(start, 1ms, never) == false);
    const auto second = one.plan.begin_wait(true);
    BOOST_TEST(!one.plan.end_wait(first));
    BOOST_TEST(one.plan.end_wait(second));
    BOOST_TEST(!one.plan.end_wait(second));
    BOOST_TEST(!one.plan.stop_listening());

    acquire polled{every_two_seconds()};
    polled.busy_at(0s);
    BOOST_TEST(!polled.after(1ms, {.is_head = true}).listens);
}

BOOST_AUTO_TEST_CASE(futile_waits_are_followed_by_growing_pauses)
{
    acquire one{every_two_seconds()};
    one.busy_at(0s);
    auto now = 0ms;
    const auto wake_in_vain = [&](std::chrono::milliseconds after) {
        BOOST_TEST(one.after(now).listens);
        const auto wait = one.plan.begin_wait(true);
        now += after;
        BOOST_TEST(one.plan.end_wait(wait));
        BOOST_TEST(one.after(now).kind == action::send);
        static_cast<void>(one.plan.on_sent(false));
        now += 1ms;
        static_cast<void>(one.plan.on_busy(start + now, 1ms, never));
    };
    for (const auto pause : {1ms, 2ms, 4ms}) {
        for (int n = pause == 1ms ? 0 : 31; n < 32; ++n)
            wake_in_vain(1ms);
        BOOST_TEST(!one.after(now).listens);
        BOOST_TEST((one.after(now).until == start + now + pause));
        one.plan.begin_wait(false);
        // A release in this locker is noticed nevertheless.
        auto notified = one.plan;
        notified.on_release();
        BOOST_TEST(notified.next(start + now, head, one.schedule).kind == action::send);
        now += pause;
        BOOST_TEST(one.after(now).kind == action::send);
        static_cast<void>(one.plan.on_sent(false));
        now += 1ms;
        static_cast<void>(one.plan.on_busy(start + now, 1ms, never));
    }
    // A wait of normal length halves the count.
    wake_in_vain(10ms);
    for (int n = 0; n < 14; ++n)
        wake_in_vain(1ms);
    BOOST_TEST(one.after(now).listens);
}

BOOST_AUTO_TEST_CASE(request_much_older_than_recent_answer_times_is_overdue)
{
    colock::detail::answer_times known;
    BOOST_TEST(!known.is_overdue(start, start + 99ms));
    BOOST_TEST(known.is_overdue(start, start + 100ms));
    known.add(80ms);
    known.add(1ms);
    BOOST_TEST(!known.is_overdue(start, start + 159ms));
    BOOST_TEST(known.is_overdue(start, start + 160ms));
    // Afterwards the slow answer is the seventeenth from the end.
    for (int n = 0; n < 14; ++n)
        known.add(1ms);
    BOOST_TEST(!known.is_overdue(start, start + 159ms));
    known.add(1ms);
    BOOST_TEST(known.is_overdue(start, start + 100ms));
}

BOOST_AUTO_TEST_CASE(replacing_claim_continues_without_a_wait_at_the_backend)
{
    acquire one{every_two_seconds()};
    one.busy_at(0s, start + 700ms);
    one.plan.begin_wait(true);
    acquire_plan fresh;
    fresh.take_progress_from(one.plan);
    BOOST_TEST(fresh.was_sent());
    BOOST_TEST(fresh.stop_waiting());
    BOOST_TEST(!one.plan.stop_waiting());
    BOOST_TEST(!fresh.stop_listening());
    BOOST_TEST(one.plan.stop_listening());
    BOOST_TEST((fresh.next(start, head, one.schedule).until == start + 700ms));
}

BOOST_AUTO_TEST_SUITE_END()
