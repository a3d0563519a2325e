// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/policy/acquire_plan.hpp"

#include "core/policy/answer_times.hpp"
#include "core/policy/retry_schedule.hpp"

#include <colock/retry.hpp>

#include <boost/test/unit_test.hpp>

#include <ostream>

using namespace colock;
using namespace std::chrono_literals;
using colock::detail::acquire_plan;
using colock::detail::retry_schedule;

namespace colock::detail {

std::ostream& operator<<(std::ostream& out, acquire_plan::action what)
{
    constexpr const char* names[] = {"await_answer", "send", "count", "yield", "wait", "give_up"};
    return out << names[static_cast<unsigned>(what)];
}

} // namespace colock::detail

BOOST_AUTO_TEST_SUITE(attempts)

namespace {

using action = acquire_plan::action;
using time_point = lease_clock::time_point;
constexpr time_point start{1000h};
constexpr auto never = time_point::max();

constexpr acquire_plan::view head{.is_head = true, .events = true};
constexpr acquire_plan::view behind{.events = true};

/// An attempt under a policy, some time after it began.
struct acquire
{
    retry_policy policy;
    retry_schedule schedule{policy, start};
    acquire_plan tried{};

    acquire_plan::decision after(lease_clock::duration span, acquire_plan::view seen = head) const
    {
        return tried.next(start + span, seen, schedule);
    }
    /// Sent, and answered busy; it counts as the policy says.
    void busy_at(lease_clock::duration span, time_point expires = never)
    {
        static_cast<void>(tried.sent(start + span >= schedule.next_at()));
        if (tried.found_busy(start + span, 1ms, expires))
            BOOST_TEST(schedule.failed(start + span));
    }
    void fails_at(lease_clock::duration span)
    {
        static_cast<void>(tried.sent(start + span >= schedule.next_at()));
        BOOST_TEST(tried.found_failing(start + span, false));
        BOOST_TEST(schedule.failed(start + span));
    }
    /// True if that counts.
    bool fails_in_doubt_at(lease_clock::duration span, bool in_doubt = true)
    {
        static_cast<void>(tried.sent(start + span >= schedule.next_at()));
        const bool counts = tried.found_failing(start + span, in_doubt);
        if (counts)
            BOOST_TEST(schedule.failed(start + span));
        tried.waits(false);
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
    BOOST_TEST(one.after(0s).what == action::send);
    BOOST_TEST(one.after(0s).counts);
}

BOOST_AUTO_TEST_CASE(failed_attempt_is_repeated_when_contact_is_regained)
{
    acquire one{every_two_seconds()};
    one.fails_at(0s);
    one.tried.waits(false);
    BOOST_TEST(one.after(1s).what == action::wait);
    BOOST_TEST(one.tried.regained_contact(false));
    BOOST_TEST(one.after(1s).what == action::send);
    BOOST_TEST(!one.after(1s).counts);
    one.busy_at(1s);
    BOOST_TEST(!one.tried.regained_contact(true));
    one.tried.waits(true);
    BOOST_TEST(!one.tried.regained_contact(false));
    BOOST_TEST(one.after(1s).what == action::wait);
    // The event that it waits for may have been missed.
    BOOST_TEST(one.tried.regained_contact(true));
    BOOST_TEST(one.after(1s).what == action::send);
}

BOOST_AUTO_TEST_CASE(whoever_has_not_waited_tries_once_however_late_it_is)
{
    const acquire one{every_two_seconds().total_time(0s)};
    BOOST_TEST(one.after(1s).what == action::send);
    acquire other{every_two_seconds().total_time(0s)};
    other.tried.waits(false);
    BOOST_TEST(other.after(1s).what == action::give_up);
}

BOOST_AUTO_TEST_CASE(after_a_busy_answer_a_head_waits_for_the_delay_the_expiry_or_the_end_of_its_time)
{
    acquire one{every_two_seconds().total_time(3s)};
    one.busy_at(0s);
    BOOST_TEST(one.after(1s).what == action::wait);
    BOOST_TEST((one.after(1s).until == start + 2s));
    one.tried.waits(true);
    BOOST_TEST(one.after(2s).what == action::send);
    BOOST_TEST(one.after(2s).counts);

    one.busy_at(2s);
    BOOST_TEST((one.after(2s + 1ms).until == start + 3s));
    one.tried.waits(true);
    BOOST_TEST(one.after(3s).what == action::give_up);

    acquire expiring{every_two_seconds()};
    expiring.busy_at(0s, start + 500ms);
    BOOST_TEST((expiring.after(1ms).until == start + 500ms));
    expiring.tried.waits(true);
    BOOST_TEST(expiring.after(500ms).what == action::send);
    BOOST_TEST(!expiring.after(500ms).counts);
}

BOOST_AUTO_TEST_CASE(an_earlier_expiry_is_one_of_the_attempt_that_was_answered)
{
    acquire one{every_two_seconds()};
    one.busy_at(0s, start + 1s);
    one.tried.hears_of_expiry(start + 300ms);
    one.tried.hears_of_expiry(start + 400ms);
    BOOST_TEST((one.after(1ms).until == start + 300ms));
    one.tried.waits(true);
    one.busy_at(300ms);
    BOOST_TEST((one.after(301ms).until == start + 2s));
    // Heard while the attempt was under way, it holds for the answer.
    one.tried.waits(true);
    static_cast<void>(one.tried.sent(false));
    one.tried.hears_of_expiry(start + 700ms);
    static_cast<void>(one.tried.found_busy(start, 1ms, start + 1s));
    BOOST_TEST((one.after(500ms).until == start + 700ms));
}

BOOST_AUTO_TEST_CASE(a_head_that_is_told_tries_again_without_counting)
{
    acquire one{every_two_seconds()};
    one.busy_at(0s);
    one.tried.waits(true);
    one.tried.told();
    BOOST_TEST(one.after(1ms).what == action::send);
    BOOST_TEST(!one.after(1ms).counts);
    // Its turn of the policy has come meanwhile.
    BOOST_TEST(one.after(2s).counts);
    // It is told for one attempt.
    one.busy_at(1ms);
    BOOST_TEST(one.after(2ms).what == action::wait);
}

BOOST_AUTO_TEST_CASE(after_an_error_only_time_helps)
{
    acquire one{every_two_seconds()};
    one.fails_at(0s);
    BOOST_TEST(!one.after(1ms).listens);
    one.tried.waits(false);
    one.tried.told();
    BOOST_TEST(one.after(1ms).what == action::wait);
    BOOST_TEST(one.after(2s).what == action::send);
}

BOOST_AUTO_TEST_CASE(what_an_outcome_that_is_unknown_may_have_left_is_looked_for_soon_and_without_counting)
{
    acquire one{retry_policy::fixed(10min).jitter(0)};
    BOOST_TEST(one.fails_in_doubt_at(0s));
    auto now = 0s;
    for (const auto pause : {1s, 2s, 4s, 8s, 16s, 32s, 64s, 64s}) {
        BOOST_TEST((one.after(now).until == start + now + pause));
        BOOST_TEST(!one.after(now).listens);
        // An event source may be as broken as the rest.
        one.tried.told();
        BOOST_TEST(one.after(now + pause - 1ms).what == action::wait);
        now += pause;
        BOOST_TEST(one.after(now).what == action::send);
        BOOST_TEST(!one.after(now).counts);
        // It stays in doubt when the backend cannot be reached meanwhile.
        BOOST_TEST(!one.fails_in_doubt_at(now, pause == 2s));
    }
    BOOST_TEST(one.schedule.attempts() == 1U);
    // The policy's own attempts are made, and counted, as before.
    BOOST_TEST(one.after(10min).counts);

    // An answer ends the doubt.
    auto found = one;
    static_cast<void>(found.tried.sent(false));
    BOOST_TEST(!found.tried.found_busy(start + 300s, 1ms, never));
    BOOST_TEST(found.after(300s).listens);
    BOOST_TEST((found.after(300s).until == start + 10min));
    // After an attempt of the policy's own it looks as soon as after the first.
    auto tried_again = one;
    BOOST_TEST(tried_again.fails_in_doubt_at(10min, false));
    BOOST_TEST((tried_again.after(10min).until == start + 10min + 1s));
}

BOOST_AUTO_TEST_CASE(where_nothing_can_have_been_left_the_delay_is_the_policys)
{
    acquire one{retry_policy::fixed(10min).jitter(0)};
    BOOST_TEST(one.fails_in_doubt_at(0s, false));
    BOOST_TEST((one.after(0s).until == start + 10min));
    // A shorter delay goes first.
    acquire quick{retry_policy::fixed(300ms).jitter(0)};
    BOOST_TEST(quick.fails_in_doubt_at(0s));
    BOOST_TEST((quick.after(0s).until == start + 300ms));
    BOOST_TEST(quick.after(300ms).counts);
}

BOOST_AUTO_TEST_CASE(who_has_not_been_suspended_since_the_answer_lets_others_run)
{
    acquire one{retry_policy::fixed(0s).jitter(0)};
    one.busy_at(0s);
    BOOST_TEST(one.after(0s).what == action::yield);
    one.tried.yielded();
    BOOST_TEST(one.after(0s).what == action::send);
}

BOOST_AUTO_TEST_CASE(who_stands_behind_counts_without_a_word_to_the_backend)
{
    acquire finite{every_two_seconds().times(3)};
    BOOST_TEST(finite.after(0s, behind).what == action::count);
    BOOST_TEST(finite.after(0s, behind).yields);
    BOOST_TEST(finite.schedule.failed(start));
    const auto then = finite.after(1s, behind);
    BOOST_TEST(then.what == action::wait);
    BOOST_TEST(!then.listens);
    BOOST_TEST((then.until == start + 2s));

    const acquire endless{every_two_seconds()};
    BOOST_TEST(endless.after(10s, behind).what == action::wait);
    BOOST_TEST((endless.after(10s, behind).until == never));

    acquire bounded{every_two_seconds().total_time(1s)};
    BOOST_TEST(bounded.schedule.failed(start));
    BOOST_TEST((bounded.after(0s, behind).until == start + 1s));
    BOOST_TEST(bounded.after(1s, behind).what == action::give_up);
}

BOOST_AUTO_TEST_CASE(behind_a_holder_of_the_same_locker_one_attempt_counts_and_none_is_sent)
{
    acquire one{every_two_seconds().times(5)};
    auto seen = head;
    seen.held_here_until = start + 1s;
    BOOST_TEST(one.after(0s, seen).what == action::count);
    BOOST_TEST(!one.after(0s, seen).yields);
    BOOST_TEST(one.schedule.failed(start));
    BOOST_TEST(one.after(0s, seen).what == action::wait);
    BOOST_TEST(!one.after(0s, seen).listens);
    BOOST_TEST((one.after(0s, seen).until == start + 1s));
    one.tried.waits(false);
    // Expired, or let go of.
    BOOST_TEST(one.after(1s, seen).what == action::send);
    one.tried.told();
    BOOST_TEST(one.after(1ms, seen).what == action::send);
    // The policy asks in the end all the same.
    acquire longer{every_two_seconds().times(5)};
    seen.held_here_until = start + 10s;
    BOOST_TEST(longer.schedule.failed(start));
    BOOST_TEST((longer.after(0s, seen).until == start + 2s));
    BOOST_TEST(longer.after(2s, seen).what == action::send);
}

BOOST_AUTO_TEST_CASE(who_waits_stands_back_for_other_lockers)
{
    acquire one{every_two_seconds()};
    auto seen = head;
    seen.stands_back_until = start + 5ms;
    BOOST_TEST(one.after(0s, seen).what == action::send);
    one.busy_at(0s);
    one.tried.waits(true);
    one.tried.told();
    BOOST_TEST(one.after(1ms, seen).what == action::wait);
    BOOST_TEST((one.after(1ms, seen).until == start + 5ms));
    BOOST_TEST(one.after(5ms, seen).what == action::send);
}

BOOST_AUTO_TEST_CASE(first_attempt_that_was_counted_already_does_not_count_again)
{
    acquire one{retry_policy::fixed(0s)};
    one.tried.first_is_counted();
    BOOST_TEST(one.after(0s).what == action::send);
    BOOST_TEST(!one.after(0s).counts);
    static_cast<void>(one.tried.sent(false));
    BOOST_TEST(!one.tried.found_busy(start, 1ms, never));
    one.tried.yielded();
    BOOST_TEST(one.after(1ms).what == action::send);
    BOOST_TEST(one.after(1ms).counts);
}

BOOST_AUTO_TEST_CASE(an_unanswered_attempt_is_waited_for_until_the_end_of_its_time)
{
    acquire one{every_two_seconds().total_time(3s)};
    static_cast<void>(one.tried.sent(true));
    auto seen = head;
    seen.unanswered = true;
    one.tried.told();
    BOOST_TEST(one.after(2s, seen).what == action::await_answer);
    BOOST_TEST((one.after(2s, seen).until == start + 3s));
    BOOST_TEST(one.after(3s, seen).what == action::give_up);
}

BOOST_AUTO_TEST_CASE(a_wait_at_the_backend_is_begun_once_and_ended_once)
{
    acquire one{every_two_seconds()};
    one.busy_at(0s);
    BOOST_TEST(one.after(1ms).listens);
    const auto first = one.tried.waits(true);
    BOOST_TEST(!one.after(1ms).listens);
    BOOST_TEST(one.tried.sent(false));
    BOOST_TEST(!one.tried.woken(first));
    BOOST_TEST(one.tried.found_busy(start, 1ms, never) == false);
    const auto second = one.tried.waits(true);
    BOOST_TEST(!one.tried.woken(first));
    BOOST_TEST(one.tried.woken(second));
    BOOST_TEST(!one.tried.woken(second));
    BOOST_TEST(!one.tried.stops_listening());

    acquire polled{every_two_seconds()};
    polled.busy_at(0s);
    BOOST_TEST(!polled.after(1ms, {.is_head = true}).listens);
}

BOOST_AUTO_TEST_CASE(waits_that_end_at_once_and_in_vain_are_followed_by_growing_pauses)
{
    acquire one{every_two_seconds()};
    one.busy_at(0s);
    auto now = 0ms;
    const auto wake_in_vain = [&](std::chrono::milliseconds after) {
        BOOST_TEST(one.after(now).listens);
        const auto wait = one.tried.waits(true);
        now += after;
        BOOST_TEST(one.tried.woken(wait));
        BOOST_TEST(one.after(now).what == action::send);
        static_cast<void>(one.tried.sent(false));
        now += 1ms;
        static_cast<void>(one.tried.found_busy(start + now, 1ms, never));
    };
    for (const auto pause : {1ms, 2ms, 4ms}) {
        for (int n = pause == 1ms ? 0 : 31; n < 32; ++n)
            wake_in_vain(1ms);
        BOOST_TEST(!one.after(now).listens);
        BOOST_TEST((one.after(now).until == start + now + pause));
        one.tried.waits(false);
        // A release of this locker's is heard all the same.
        auto told = one.tried;
        told.told();
        BOOST_TEST(told.next(start + now, head, one.schedule).what == action::send);
        now += pause;
        BOOST_TEST(one.after(now).what == action::send);
        static_cast<void>(one.tried.sent(false));
        now += 1ms;
        static_cast<void>(one.tried.found_busy(start + now, 1ms, never));
    }
    // One that lasts as long as it should makes up for half of them.
    wake_in_vain(10ms);
    for (int n = 0; n < 14; ++n)
        wake_in_vain(1ms);
    BOOST_TEST(one.after(now).listens);
}

BOOST_AUTO_TEST_CASE(what_takes_much_longer_than_the_last_answers_is_overdue)
{
    colock::detail::answer_times known;
    BOOST_TEST(!known.is_overdue(start, start + 99ms));
    BOOST_TEST(known.is_overdue(start, start + 100ms));
    known.add(80ms);
    known.add(1ms);
    BOOST_TEST(!known.is_overdue(start, start + 159ms));
    BOOST_TEST(known.is_overdue(start, start + 160ms));
    // The slow one is the seventeenth from the end then.
    for (int n = 0; n < 14; ++n)
        known.add(1ms);
    BOOST_TEST(!known.is_overdue(start, start + 159ms));
    known.add(1ms);
    BOOST_TEST(known.is_overdue(start, start + 100ms));
}

BOOST_AUTO_TEST_CASE(another_claim_goes_on_where_the_spent_one_was_but_nobody_listens_for_it)
{
    acquire one{every_two_seconds()};
    one.busy_at(0s, start + 700ms);
    one.tried.waits(true);
    acquire_plan fresh;
    fresh.go_on_for(one.tried);
    BOOST_TEST(fresh.was_sent());
    BOOST_TEST(fresh.stops_waiting());
    BOOST_TEST(!one.tried.stops_waiting());
    BOOST_TEST(!fresh.stops_listening());
    BOOST_TEST(one.tried.stops_listening());
    BOOST_TEST((fresh.next(start, head, one.schedule).until == start + 700ms));
}

BOOST_AUTO_TEST_SUITE_END()
