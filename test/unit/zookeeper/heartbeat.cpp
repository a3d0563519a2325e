// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session/heartbeat.hpp"

#include <boost/test/unit_test.hpp>

using namespace std::chrono_literals;
using colock::lease_clock;
using colock::zookeeper::detail::heartbeat;
using action = heartbeat::action;

namespace {

constexpr colock::zookeeper::detail::session_terms agreed{.timeout = 12s, .server_tick = 2s};
/// Time for which a write that was sent at `start` proves that the session lives: the timeout, less half a tick and the
/// margin.
constexpr lease_clock::duration good_for = 12s - 1s - 122ms;

struct open_session
{
    lease_clock::time_point start{1h};
    heartbeat heart{agreed, 10s};

    open_session()
    {
        heart.on_connecting();
        heart.on_connected(start, agreed);
    }
    /// Returns when the last write or handshake that proves the session was sent, as the time since `start`.
    [[nodiscard]] lease_clock::duration proof_time() const { return heart.valid_until() - start - good_for; }
    void answer(lease_clock::duration sent, lease_clock::duration answered)
    {
        heart.on_write_answered(start + sent, start + answered);
    }
    /// Returns the number of checks until `wanted` is returned; 0 if it is not returned within `max_checks` checks.
    int checks_until(action wanted, int max_checks = 100)
    {
        for (int check = 1; check <= max_checks; ++check) {
            now += heart.check_interval();
            if (const auto what = heart.check(start + now); what == wanted)
                return check;
        }
        return 0;
    }
    lease_clock::duration now{};
};

} // namespace

BOOST_AUTO_TEST_SUITE(zookeeper_heartbeat)

BOOST_AUTO_TEST_CASE(nothing_is_proven_before_the_first_handshake)
{
    heartbeat heart(agreed, 10s);
    BOOST_TEST((heart.valid_until() == lease_clock::time_point::min()));
    heart.on_connecting();
    BOOST_TEST((heart.check(lease_clock::time_point(1h)) == action::none));
    BOOST_TEST((heart.valid_until() == lease_clock::time_point::min()));
}

BOOST_FIXTURE_TEST_CASE(a_handshake_is_a_proof_without_a_later_write, open_session)
{
    BOOST_TEST((proof_time() == 0s));
}

BOOST_FIXTURE_TEST_CASE(the_timeout_is_the_one_that_the_server_has_granted, open_session)
{
    heart.on_connected(start + 1s, {.timeout = 40s, .server_tick = 2s});
    BOOST_TEST((heart.valid_until() == start + 1s + 40s - 1s - 402ms));
    BOOST_TEST((heart.check_interval() == lease_clock::duration(40s) / 24));
}

BOOST_FIXTURE_TEST_CASE(a_write_counts_when_a_later_one_was_sent_half_a_tick_after_its_answer, open_session)
{
    answer(2s, 2100ms);
    BOOST_TEST((proof_time() == 0s));
    answer(3099ms, 3200ms);
    BOOST_TEST((proof_time() == 0s));
    answer(3100ms, 3300ms);
    BOOST_TEST((proof_time() == 2s));
}

BOOST_FIXTURE_TEST_CASE(writes_close_together_are_one_piece_of_evidence, open_session)
{
    for (auto at = 2000ms; at < 2900ms; at += 1ms)
        answer(at, at + 5ms);
    BOOST_TEST((proof_time() == 0s));
}

BOOST_FIXTURE_TEST_CASE(a_write_in_the_last_moment_before_a_cut_proves_nothing_yet, open_session)
{
    answer(2s, 2001ms);
    answer(4s, 4001ms);
    BOOST_TEST((proof_time() == 2s));
    answer(4999ms, 5s);
    BOOST_TEST((proof_time() == 2s));
}

BOOST_FIXTURE_TEST_CASE(writes_that_a_stalled_loop_sends_together_prove_only_an_earlier_write, open_session)
{
    answer(2s, 2001ms);
    for (int i = 0; i < 10; ++i)
        answer(9s, 9s + i * 1ms);
    BOOST_TEST((proof_time() == 2s));
}

BOOST_FIXTURE_TEST_CASE(an_answer_that_was_read_late_counts_from_when_its_request_was_sent, open_session)
{
    // The second write was sent soon after the reply to the first, but this reply was read late.
    answer(2s, 6s);
    answer(5s, 6s);
    BOOST_TEST((proof_time() == 0s));
    answer(7s, 7100ms);
    BOOST_TEST((proof_time() == 5s));
}

BOOST_FIXTURE_TEST_CASE(a_stream_of_writes_keeps_the_proof_fresh, open_session)
{
    for (auto at = 0ms; at <= 60'000ms; at += 1ms)
        answer(at, at + 3ms);
    // The difference is at most the delay of a reply, half a tick, and the minimum distance of recorded writes.
    BOOST_TEST((proof_time() > 60s - 1200ms));
    BOOST_TEST((proof_time() <= 60s - 1003ms));
}

BOOST_FIXTURE_TEST_CASE(writes_of_an_earlier_connection_prove_nothing_on_the_next, open_session)
{
    answer(2s, 2100ms);
    heart.on_disconnected();
    heart.on_connecting();
    heart.on_connected(start + 3s, agreed);
    BOOST_TEST((proof_time() == 3s));
    answer(3500ms, 3600ms);
    answer(3700ms, 3800ms);
    BOOST_TEST((proof_time() == 3s));
}

BOOST_FIXTURE_TEST_CASE(a_lease_does_not_go_back, open_session)
{
    answer(6s, 6s);
    answer(8s, 8s);
    BOOST_TEST((proof_time() == 6s));
    heart.on_disconnected();
    heart.on_connecting();
    heart.on_connected(start + 1s, agreed);
    BOOST_TEST((proof_time() == 6s));
}

BOOST_FIXTURE_TEST_CASE(the_first_beat_goes_out_at_once_and_the_next_a_sixth_after_its_answer, open_session)
{
    BOOST_TEST(checks_until(action::beat) == 1);
    heart.on_beat_ended(start + now);
    BOOST_TEST(checks_until(action::beat) == 4);
}

BOOST_FIXTURE_TEST_CASE(no_beat_is_sent_while_one_is_unanswered, open_session)
{
    BOOST_TEST(checks_until(action::beat) == 1);
    BOOST_TEST(checks_until(action::beat, 10) == 0);
}

BOOST_FIXTURE_TEST_CASE(beats_that_a_stalled_loop_has_missed_are_not_caught_up, open_session)
{
    BOOST_TEST(checks_until(action::beat) == 1);
    heart.on_beat_ended(start + now);
    now += 1min;
    BOOST_TEST(checks_until(action::beat) == 1);
    heart.on_beat_ended(start + now);
    BOOST_TEST(checks_until(action::beat) == 4);
}

BOOST_FIXTURE_TEST_CASE(a_connection_whose_beat_is_unanswered_for_a_third_of_the_timeout_is_cut, open_session)
{
    BOOST_TEST(checks_until(action::beat) == 1);
    answer(now, now);
    heart.on_beat_ended(start + now);
    BOOST_TEST(checks_until(action::beat) == 4);
    const auto disconnected_after = checks_until(action::disconnect);
    BOOST_TEST((disconnected_after * heart.check_interval() >= 4s));
    BOOST_TEST((disconnected_after * heart.check_interval() <= 5s));
}

BOOST_FIXTURE_TEST_CASE(a_handshake_has_a_sixth_of_the_timeout, open_session)
{
    heart.on_disconnected();
    BOOST_TEST(checks_until(action::disconnect) == 0);
    heart.on_connecting();
    BOOST_TEST((checks_until(action::disconnect) * heart.check_interval() == 2s));
}

BOOST_AUTO_TEST_CASE(a_handshake_has_at_most_the_connect_timeout)
{
    heartbeat heart(agreed, 500ms);
    BOOST_TEST((heart.check_interval() == 500ms));
    heart.on_connecting();
    BOOST_TEST((heart.check_interval() == 125ms));
    for (int i = 0; i < 3; ++i)
        BOOST_TEST((heart.check({}) == action::none));
    BOOST_TEST((heart.check({}) == action::disconnect));
    heart.on_connecting();
    heart.on_connected({}, agreed);
    BOOST_TEST((heart.check_interval() == 500ms));
}

BOOST_FIXTURE_TEST_CASE(stalled_event_loop_does_not_cut_the_connection, open_session)
{
    BOOST_TEST(checks_until(action::beat) == 1);
    now += 1h;
    BOOST_TEST((heart.check(start + now) == action::none));
}

BOOST_FIXTURE_TEST_CASE(new_connection_has_the_full_time_limit, open_session)
{
    BOOST_TEST(checks_until(action::disconnect) != 0);
    heart.on_disconnected();
    heart.on_connecting();
    BOOST_TEST((heart.check(start + now) == action::none));
    heart.on_connected(start + now, agreed);
    BOOST_TEST((heart.check(start + now) == action::beat));
    BOOST_TEST((heart.check(start + now) == action::none));
}

BOOST_AUTO_TEST_SUITE_END()
