// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/rig.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// A rig behind the script, and one acquire that can be cancelled.
struct shielded : rig
{
    asio::cancellation_signal cancel;
    int completions = 0;
    error_code result;
    lock granted;

    explicit shielded(locker_options options = {}) : rig(behind::scripted, std::move(options)) {}

    void begin(acquire_options options = {})
    {
        locker->async_acquire(
            "k", std::move(options), asio::bind_cancellation_slot(cancel.slot(), [this](error_code code, lock held) {
                ++completions;
                result = code;
                granted = std::move(held);
            }));
        ready();
    }
    void stop()
    {
        cancel.emit(asio::cancellation_type::terminal);
        ready();
    }
    [[nodiscard]] std::size_t count(operation what) const { return script->count(what); }
};

const retry_policy every_second = retry_policy::fixed(1s).jitter(0);

} // namespace

BOOST_AUTO_TEST_SUITE(shield)

BOOST_AUTO_TEST_CASE(a_cancelled_acquire_does_not_wait_and_its_settler_does_not_overtake_the_create)
{
    shielded on;
    on.script->next(operation::create, step::hold());
    on.begin();
    on.stop();
    BOOST_TEST(on.completions == 1);
    BOOST_TEST((on.result == asio::error::operation_aborted));
    on.advance_by_steps(10s, 1s);
    BOOST_TEST(on.count(operation::abandon) == 0U);
    BOOST_TEST(on.count(operation::release) == 0U);
    BOOST_TEST(on.locker->stats().settling == 1U);
    BOOST_TEST(on.idle());
    on.script->deliver();
    on.ready();
    BOOST_TEST(on.count(operation::abandon) + on.count(operation::release) == 1U);
    BOOST_TEST(on.locker->stats().settled == 1U);
    BOOST_TEST(on.locker->stats().unproven == 0U);
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_create_that_arrives_after_the_clean_up_began_is_taken_back)
{
    shielded on;
    on.script->always(operation::wait, step::hold());
    on.script->next(operation::create, step::hold_unknown());
    on.begin({.retry = retry_policy::fixed(1h)});
    on.stop();
    BOOST_TEST(on.completions == 1);
    on.advance_by_steps(1s, 100ms);
    BOOST_TEST(on.count(operation::abandon) > 1U);
    BOOST_TEST(on.locker->stats().settling == 1U);
    on.script->deliver();
    on.ready();
    BOOST_TEST(on.stored().size() == 1U);
    on.wind_down();
    BOOST_TEST(on.locker->stats().settled == 1U);
    BOOST_TEST(on.locker->stats().unproven == 0U);
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_create_that_arrives_after_the_release_is_taken_back)
{
    shielded on;
    on.script->next(operation::create, step::hold_unknown());
    on.begin({.retry = every_second});
    on.advance(2s);
    BOOST_TEST_REQUIRE(on.completions == 1);
    BOOST_TEST(on.granted.held());
    on.granted = {};
    on.ready();
    BOOST_TEST(on.stored().size() == 1U);
    BOOST_TEST(on.locker->stats().settling == 1U);
    on.advance(100ms);
    on.script->deliver();
    on.ready();
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_cancelled_waiter_that_was_granted_in_the_same_instant_holds_nothing_or_has_the_lock)
{
    for (const bool cancel_first : {true, false}) {
        shielded on;
        on.script->next(operation::create, step::hold());
        on.begin();
        if (cancel_first)
            on.cancel.emit(asio::cancellation_type::terminal);
        on.script->deliver();
        if (!cancel_first)
            on.cancel.emit(asio::cancellation_type::terminal);
        on.ready();
        BOOST_TEST(on.completions == 1);
        BOOST_TEST(on.granted.held() == !on.result);
        on.granted = {};
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_deadline_and_a_grant_in_the_same_instant_have_one_result)
{
    for (const bool deliver_first : {true, false}) {
        shielded on;
        on.script->next(operation::create, step::hold());
        on.begin({.ttl = 1h, .retry = retry_policy::forever().total_time(1min)});
        if (deliver_first)
            on.script->deliver();
        on.clock.skip(1min);
        if (!deliver_first)
            on.script->deliver();
        on.advance(1s);
        BOOST_TEST(on.completions == 1);
        BOOST_TEST(on.granted.held() == !on.result);
        if (on.result)
            BOOST_TEST((on.result == errc::retry_exhausted));
        on.granted = {};
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_repeated_create_has_the_same_token_and_finds_its_own_grant)
{
    shielded on;
    on.script->next(operation::create, step::lose_reply());
    on.script->next(operation::create, step::lose_request());
    on.begin({.retry = every_second});
    on.advance_by_steps(3s, 100ms);
    BOOST_TEST_REQUIRE(on.completions == 1);
    BOOST_TEST(on.granted.held());
    BOOST_TEST(on.count(operation::create) == 3U);
    for (const auto& made : on.script->calls())
        BOOST_TEST((made.token == on.granted.token()));
    BOOST_TEST(on.locker->stats().attempts == 3U);
}

BOOST_AUTO_TEST_CASE(a_tainted_claim_ends_with_abandon_even_if_it_was_granted)
{
    for (const bool by_verb : {true, false}) {
        shielded on;
        on.script->next(operation::create, step::lose_request());
        on.begin({.retry = every_second});
        on.advance(2s);
        BOOST_TEST_REQUIRE(on.granted.held());
        if (by_verb)
            on.run(on.granted.release(on_failure::raise));
        on.granted = {};
        on.ready();
        BOOST_TEST(on.count(operation::release) == 0U);
        BOOST_TEST(on.count(operation::abandon) == 1U);
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_tainted_claim_is_not_handed_over)
{
    shielded on;
    on.script->next(operation::create, step::lose_request());
    on.begin({.retry = every_second});
    on.advance(2s);
    auto waiting = on.start(on.locker->acquire("k"));
    on.ready();
    on.granted = {};
    BOOST_TEST(waiting.get(on.io()).held());
    BOOST_TEST(on.count(operation::hand_over) == 0U);
    BOOST_TEST(on.count(operation::abandon) == 1U);
}

BOOST_AUTO_TEST_CASE(a_clean_claim_ends_with_release)
{
    shielded on;
    on.script->next(operation::create, step::fail(errc::unavailable));
    on.begin({.retry = every_second});
    on.advance(2s);
    BOOST_TEST_REQUIRE(on.granted.held());
    on.granted = {};
    on.ready();
    BOOST_TEST(on.count(operation::release) == 1U);
    BOOST_TEST(on.count(operation::abandon) == 0U);
}

BOOST_AUTO_TEST_CASE(a_hand_over_of_unknown_outcome_taints_both_claims)
{
    shielded on;
    auto held = on.acquire("k");
    on.begin({.retry = every_second});
    on.script->next(operation::hand_over, step::lose_reply());
    held = {};
    on.ready();
    on.advance_by_steps(3s, 100ms);
    BOOST_TEST_REQUIRE(on.completions == 1);
    BOOST_TEST(on.granted.held());
    BOOST_TEST(on.count(operation::release) == 0U);
    on.granted = {};
    on.wind_down();
    BOOST_TEST(on.count(operation::release) == 0U);
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_grant_that_comes_too_late_is_given_back_and_counts_as_an_attempt)
{
    shielded on;
    const auto late = [&] { return step::pass().after([&] { on.clock.skip(9s); }); };
    on.script->next(operation::create, late());
    on.begin({.ttl = 10s, .retry = retry_policy::fixed(1s).times(0)});
    BOOST_TEST_REQUIRE(on.completions == 1);
    BOOST_TEST((on.result == errc::unavailable));
    on.wind_down();
    BOOST_TEST(on.count(operation::release) == 1U);
    on.check_clean();

    on.script->next(operation::create, late());
    on.begin({.ttl = 10s, .retry = retry_policy::fixed(1s).jitter(0).times(1)});
    on.advance_by_steps(3s, 100ms);
    BOOST_TEST_REQUIRE(on.completions == 2);
    BOOST_TEST(!on.result);
    BOOST_TEST(on.granted.held());
    BOOST_TEST(on.locker->stats().grants == 1U);
    on.granted = {};
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_late_grant_of_a_tainted_claim_is_abandoned_in_the_end)
{
    shielded on;
    on.script->next(operation::create, step::hold_unknown());
    on.script->next(operation::create, step::pass().after([&] { on.clock.skip(9500ms); }));
    on.begin({.ttl = 10s, .retry = retry_policy::fixed(1s).jitter(0).times(1)});
    on.advance(2s);
    BOOST_TEST_REQUIRE(on.completions == 1);
    BOOST_TEST(!!on.result);
    on.advance(1s);
    on.script->deliver();
    on.ready();
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(what_no_backend_can_prove_is_given_up_after_ttl_and_operation_timeout_and_counted)
{
    struct listener : observer
    {
        void settled(std::string_view, bool proven) noexcept override { heard.push_back(proven); }
        std::vector<bool> heard;
    };
    const auto ears = std::make_shared<listener>();
    shielded on({.operation_timeout = 5s, .observer = ears});
    on.script->always(operation::abandon, step::fail(errc::unavailable));
    on.script->next(operation::create, step::lose_request());
    const auto sent = lease_clock::now();
    on.begin({.ttl = 20s});
    on.stop();
    on.advance_by_steps(24s, 1s);
    BOOST_TEST(on.locker->stats().settling == 1U);
    BOOST_TEST(on.locker->stats().unproven == 0U);
    on.advance_by_steps(4s, 1s);
    BOOST_TEST((lease_clock::now() - sent >= 25s));
    BOOST_TEST(on.locker->stats().settling == 0U);
    BOOST_TEST(on.locker->stats().settled == 1U);
    BOOST_TEST(on.locker->stats().unproven == 1U);
    BOOST_TEST((ears->heard == std::vector<bool>{false}));
    on.check_clean();
    BOOST_TEST(on.run(on.locker->shutdown(1s)).unproven == 1U);
}

BOOST_AUTO_TEST_CASE(the_settler_goes_on_for_the_longest_ttl_that_may_stand)
{
    // A max_hold, or an extend that shortens but is lost, ends the lease here long before it ends in the backend.
    for (const bool by_max_hold : {true, false}) {
        shielded on({.operation_timeout = 5s});
        acquire_options options{.ttl = 1h};
        if (by_max_hold)
            options.max_hold = 1s;
        on.begin(options);
        BOOST_TEST_REQUIRE(on.granted.held());
        on.script->always(operation::release, step::fail(errc::unavailable));
        on.script->always(operation::abandon, step::fail(errc::unavailable));
        if (!by_max_hold) {
            on.script->next(operation::extend, step::lose_request());
            COLOCK_THROWS(extend_error, errc::outcome_unknown, on.run(on.granted.extend(1s)));
        }
        on.granted = {};
        on.advance_by_steps(5min, 10s);
        BOOST_TEST(on.stored().size() == 1U);
        BOOST_TEST(on.locker->stats().unproven == 0U);
        BOOST_TEST(on.locker->stats().settling == 1U);
        on.script->reset();
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_refusal_is_thrown_at_once_with_its_cause)
{
    const auto cause = make_error_code(boost::system::errc::permission_denied);
    for (const auto code : {errc::access_denied, errc::misconfigured_backend, errc::unsupported}) {
        shielded on;
        on.script->next(operation::create, step::fail(code, "because", cause));
        const auto thrown = thrown_by<create_error>([&] { static_cast<void>(on.acquire("k")); });
        BOOST_TEST_REQUIRE(thrown.has_value());
        BOOST_TEST((thrown->code() == code));
        BOOST_TEST((thrown->cause() == cause));
        BOOST_TEST(thrown->detail() == "because");
        BOOST_TEST(thrown->attempts() == 1U);
        BOOST_TEST(on.count(operation::create) == 1U);
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_policy_that_ends_on_an_error_throws_that_error)
{
    for (const auto code : {errc::unavailable, errc::outcome_unknown}) {
        shielded on;
        on.script->next(operation::create, step::busy());
        on.script->always(operation::wait, step::hold());
        on.script->next(operation::create, step::fail(code, "the last one"));
        auto trying = on.start(on.locker->acquire("k", {.retry = retry_policy::fixed(1s).jitter(0).times(1)}));
        on.advance(2s);
        const auto thrown = thrown_by<create_error>([&] { static_cast<void>(trying.get(on.io())); });
        BOOST_TEST_REQUIRE(thrown.has_value());
        BOOST_TEST((thrown->code() == code));
        BOOST_TEST(thrown->detail() == "the last one");
        BOOST_TEST(thrown->attempts() == 2U);
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(giving_back)

BOOST_AUTO_TEST_CASE(quiet_never_throws_and_raise_tells)
{
    const struct
    {
        step how;
        errc code;
        bool retried;
    } table[] = {
        {step::fail(errc::unavailable), errc::unavailable, true},
        {step::fail(errc::access_denied), errc::access_denied, true},
        {step::lose_request(), errc::outcome_unknown, true},
        {step::lose_reply(), errc::outcome_unknown, true},
    };
    for (const auto& row : table) {
        for (const auto report : {on_failure::quiet, on_failure::raise}) {
            shielded on;
            auto held = on.acquire("k");
            on.script->next(operation::release, row.how);
            if (report == on_failure::quiet)
                BOOST_CHECK_NO_THROW(on.run(held.release()));
            else
                COLOCK_THROWS(release_error, row.code, on.run(held.release(report)));
            BOOST_TEST(!held.held());
            on.wind_down();
            BOOST_TEST(on.locker->stats().settled == 1U);
            on.check_clean();
        }
    }
    shielded on;
    auto held = on.acquire("k");
    on.script->next(operation::release, step::not_held());
    COLOCK_THROWS(release_error, errc::not_held, on.run(held.release(on_failure::raise)));
    BOOST_CHECK_NO_THROW(on.run(held.release(on_failure::raise)));
}

BOOST_AUTO_TEST_CASE(a_release_that_is_not_answered_ends_after_the_operation_timeout)
{
    for (const auto report : {on_failure::quiet, on_failure::raise}) {
        shielded on({.operation_timeout = 2s});
        auto held = on.acquire("k");
        on.script->next(operation::release, step::hold());
        auto releasing = on.start(held.release(report));
        on.advance_by_steps(1900ms, 100ms);
        BOOST_TEST(!releasing.done());
        on.advance(200ms);
        BOOST_TEST_REQUIRE(releasing.done());
        if (report == on_failure::quiet)
            BOOST_CHECK_NO_THROW(releasing.get(on.io()));
        else
            COLOCK_THROWS(release_error, errc::outcome_unknown, releasing.get(on.io()));
        BOOST_TEST(on.locker->stats().settling == 1U);
        on.script->deliver();
        on.ready();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_retried_release_never_removes_a_newer_lock)
{
    shielded on;
    auto held = on.acquire("k");
    on.script->next(operation::release, step::lose_reply());
    held = {};
    on.ready();
    colock::locker rival(on.memory);
    auto newer = on.run(rival.acquire("k"));
    on.wind_down();
    BOOST_TEST(on.count(operation::release) > 1U);
    BOOST_TEST(on.run(newer.is_locked()));
    BOOST_TEST(on.locker->stats().settling == 0U);
}

BOOST_AUTO_TEST_CASE(an_expired_lock_is_released_without_touching_its_successor)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        rig on(kind);
        auto expired = on.acquire("k", {.ttl = 1s});
        on.clock.skip(2s);
        auto next = on.acquire("k");
        on.run(expired.release());
        BOOST_TEST(next.held());
        BOOST_TEST(on.run(next.is_locked()));
        expired = {};
        on.ready();
        BOOST_TEST(on.stored().size() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(a_question_or_an_extend_that_is_not_answered_ends_after_the_operation_timeout)
{
    shielded on({.operation_timeout = 2s});
    auto held = on.acquire("k", {.ttl = 1h});
    on.script->next(operation::extend, step::hold());
    auto extending = on.start(held.extend(1h));
    on.advance(3s);
    BOOST_TEST_REQUIRE(extending.done());
    COLOCK_THROWS(extend_error, errc::outcome_unknown, extending.get(on.io()));
    BOOST_TEST(held.held());
    on.script->deliver();
    on.ready();
    on.script->next(operation::is_valid, step::hold());
    auto asking = on.start(held.is_locked());
    on.advance(3s);
    BOOST_TEST_REQUIRE(asking.done());
    COLOCK_THROWS(error, errc::unavailable, asking.get(on.io()));
    on.script->deliver();
    on.ready();
    on.script->next(operation::inspect, step::hold());
    auto looking = on.start(on.locker->is_locked("k"));
    on.advance(3s);
    BOOST_TEST(looking.done());
    if (looking.done())
        COLOCK_THROWS(error, errc::unavailable, looking.get(on.io()));
    on.script->deliver();
    on.ready();
    BOOST_TEST(on.idle());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(leases)

BOOST_AUTO_TEST_CASE(a_renewed_lock_stays_and_costs_nothing_when_it_is_gone)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        rig on(kind);
        auto held = on.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
        on.advance_by_steps(5min, 1s);
        BOOST_TEST(held.held());
        BOOST_TEST(on.locker->stats().renewals >= 28U);
        BOOST_TEST(on.locker->stats().renewals <= 31U);
        BOOST_TEST(on.stored().size() == 1U);
        BOOST_TEST(!on.idle());
        held = {};
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(renewal_survives_single_errors)
{
    for (const auto& how : {step::lose_request(), step::lose_reply(), step::fail(errc::unavailable),
             step::fail(errc::access_denied), step::pass().delay(4s)})
    {
        shielded on;
        auto held = on.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
        on.script->next(operation::extend, how);
        on.advance_by_steps(2min, 500ms);
        BOOST_TEST(held.held());
        BOOST_TEST(on.script->unused() == 0U);
        BOOST_TEST(on.locker->stats().renewals > 8U);
    }
}

BOOST_AUTO_TEST_CASE(a_lease_that_cannot_be_renewed_is_lost_before_the_backend_lets_it_go)
{
    for (const auto& how : {step::fail(errc::unavailable), step::lose_request(), step::hold()}) {
        shielded on;
        const auto start = lease_clock::now();
        auto held = on.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
        on.script->always(operation::extend, how);
        auto lost = on.start(held.lost());
        on.advance_by_steps(29s, 500ms);
        BOOST_TEST(!lost.done());
        BOOST_TEST(held.held());
        on.advance_by_steps(800ms, 100ms);
        BOOST_TEST((lease_clock::now() - start < 30s));
        BOOST_TEST_REQUIRE(lost.done());
        BOOST_TEST((lost.get(on.io()) == lost_reason::expired));
        BOOST_TEST(!held.held());
        BOOST_TEST(on.locker->stats().lost(lost_reason::expired) == 1U);
        on.script->reset();
        while (on.script->deliver()) {
        }
        on.wind_down();
        BOOST_TEST(on.locker->stats().settled == 1U);
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_loss_is_found_by_a_local_timer_only_while_somebody_listens)
{
    rig on;
    auto held = on.acquire("k", {.ttl = 10s});
    BOOST_TEST(on.idle());
    auto lost = on.start(held.lost());
    BOOST_TEST(!on.idle());
    on.advance(11s);
    BOOST_TEST_REQUIRE(lost.done());
    BOOST_TEST((lost.get(on.io()) == lost_reason::expired));
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_loss_is_sticky)
{
    shielded on;
    auto held = on.acquire("k", {.ttl = 10s});
    on.script->next(operation::extend, step::hold());
    auto extending = on.start(held.extend(1h));
    on.ready();
    // Nobody listens and the answer is late: for a moment the lock was not held, and so it stays.
    on.clock.skip(9950ms);
    BOOST_TEST(!held.held());
    on.script->deliver();
    on.ready();
    BOOST_TEST(!held.held());
    COLOCK_THROWS(extend_error, errc::not_held, extending.get(on.io()));
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_renewal_is_awaited_before_the_release_is_sent)
{
    for (const bool by_verb : {true, false}) {
        shielded on;
        auto held = on.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
        on.script->next(operation::extend, step::hold());
        on.advance(11s);
        BOOST_TEST_REQUIRE(on.count(operation::extend) == 1U);
        std::optional<running<void>> releasing;
        if (by_verb)
            releasing = on.start(held.release());
        else
            held = {};
        on.ready();
        BOOST_TEST(!held.held());
        BOOST_TEST(on.count(operation::release) == 0U);
        BOOST_TEST(on.count(operation::abandon) == 0U);
        on.advance(1s);
        BOOST_TEST(on.count(operation::release) == 0U);
        on.script->deliver();
        on.ready();
        BOOST_TEST(on.count(operation::release) == 1U);
        BOOST_TEST(on.count(operation::extend) == 1U);
        if (releasing)
            releasing->get(on.io());
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(an_extend_waits_for_a_renewal)
{
    shielded on;
    auto held = on.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
    on.script->next(operation::extend, step::hold());
    on.advance(11s);
    auto extending = on.start(held.extend(60s));
    on.ready();
    BOOST_TEST(on.count(operation::extend) == 1U);
    on.script->deliver();
    extending.get(on.io());
    BOOST_TEST(on.count(operation::extend) == 2U);
    BOOST_TEST(held.ttl() == 60s);
}

BOOST_AUTO_TEST_CASE(a_renewal_that_finds_another_holder_is_a_loss)
{
    shielded on;
    auto held = on.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
    auto lost = on.start(held.lost());
    colock::locker rival(on.memory);
    on.run(rival.break_lock("k"));
    auto thief = on.run(rival.acquire("k"));
    on.advance(11s);
    BOOST_TEST_REQUIRE(lost.done());
    // The store tells of the break itself; a remote one only answers the renewal.
    BOOST_TEST((lost.get(on.io()) != lost_reason::released));
    on.wind_down();
    BOOST_TEST(thief.held());
    BOOST_TEST(on.run(thief.is_locked()));

    shielded other;
    auto mine = other.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
    other.script->next(operation::extend, step::not_held());
    auto taken = other.start(mine.lost());
    other.advance(11s);
    BOOST_TEST_REQUIRE(taken.done());
    BOOST_TEST((taken.get(other.io()) == lost_reason::taken));
    BOOST_TEST(other.locker->stats().lost(lost_reason::taken) == 1U);
    other.wind_down();
    other.check_clean();
}

BOOST_AUTO_TEST_CASE(max_hold_ends_a_renewed_lock)
{
    rig on;
    const auto start = lease_clock::now();
    auto held = on.acquire("k", {.ttl = 10s, .renewal = renewal::automatic, .max_hold = 25s});
    auto lost = on.start(held.lost());
    on.advance_by_steps(24s, 500ms);
    BOOST_TEST(!lost.done());
    on.advance_by_steps(2s, 500ms);
    BOOST_TEST_REQUIRE(lost.done());
    BOOST_TEST((lost.get(on.io()) == lost_reason::expired));
    BOOST_TEST((lease_clock::now() - start < 30s));
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(an_adapter_may_tell_of_a_loss_or_a_shorter_session)
{
    shielded on;
    auto held = on.acquire("k", {.ttl = 1h});
    auto lost = on.start(held.lost());
    on.ready();
    const auto end = on.run(colock::locker(on.memory).break_lock("k"));
    BOOST_TEST(end.size() == 1U);
    on.ready();
    BOOST_TEST_REQUIRE(lost.done());
    BOOST_TEST((lost.get(on.io()) == lost_reason::broken));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(shutdowns)

BOOST_AUTO_TEST_CASE(everything_ends_and_the_report_is_clean)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        rig on(kind);
        auto held = on.acquire("held");
        auto busy = on.acquire("busy");
        auto lost = on.start(held.lost());
        auto waiting = on.start(on.locker->acquire("busy"));
        auto body = on.start(on.locker->with_lock("body", []() -> asio::awaitable<void> {
            lease_timer timer(co_await asio::this_coro::executor, 1h);
            co_await timer.async_wait(asio::deferred);
        }));
        on.ready();
        const auto report = on.run(on.locker->shutdown(1min));
        BOOST_TEST(report.clean());
        BOOST_TEST(report.unproven == 0U);
        BOOST_TEST(on.stored().empty());
        on.ready();
        COLOCK_THROWS(create_error, errc::shutting_down, waiting.get(on.io()));
        BOOST_TEST((lost.get(on.io()) == lost_reason::shutting_down));
        COLOCK_THROWS(lost_error, errc::lost, body.get(on.io()));
        BOOST_TEST(!held.held());
        COLOCK_THROWS(create_error, errc::shutting_down, on.run(on.locker->acquire("k")));
        COLOCK_THROWS(create_error, errc::shutting_down, on.run(on.locker->try_acquire("k")));
        COLOCK_THROWS(create_error, errc::shutting_down, on.run(on.locker->acquire_all({"a", "b"})));
        COLOCK_THROWS(create_error, errc::shutting_down, on.run(on.locker->with_lock("k", [] {})));
        COLOCK_THROWS(extend_error, errc::not_held, on.run(held.extend(1s)));
        BOOST_TEST(on.run(on.locker->shutdown()).clean());
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(it_reports_what_is_unsettled_and_late_answers_find_nobody)
{
    shielded on;
    auto held = on.acquire("k", {.ttl = 1h});
    on.script->next(operation::release, step::hold());
    auto shutting = on.start(on.locker->shutdown(3s));
    on.advance(2s);
    BOOST_TEST(!shutting.done());
    on.advance(2s);
    BOOST_TEST_REQUIRE(shutting.done());
    const auto report = shutting.get(on.io());
    BOOST_TEST(!report.clean());
    BOOST_TEST_REQUIRE(report.unsettled.size() == 1U);
    BOOST_TEST(report.unsettled[0] == "k");
    BOOST_TEST(on.idle());
    held = {};
    on.locker.reset();
    on.ready();
    on.script->deliver();
    on.ready();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(it_reports_a_body_that_does_not_stop)
{
    shielded on;
    bool go_on = true;
    auto body = on.start(on.locker->with_lock("k", {.ttl = 1h}, [&go_on]() -> asio::awaitable<void> {
        co_await asio::this_coro::throw_if_cancelled(false);
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        lease_timer timer(co_await asio::this_coro::executor);
        while (go_on) {
            timer.expires_after(1s);
            co_await timer.async_wait(asio::deferred);
        }
    }));
    on.ready();
    auto shutting = on.start(on.locker->shutdown(3s));
    on.advance_by_steps(4s, 500ms);
    BOOST_TEST_REQUIRE(shutting.done());
    const auto report = shutting.get(on.io());
    BOOST_TEST_REQUIRE(report.still_running.size() == 1U);
    BOOST_TEST(report.still_running[0] == "k");
    BOOST_TEST(on.stored().size() == 1U);
    BOOST_TEST(!body.done());
    go_on = false;
    on.advance_by_steps(2s, 500ms);
    COLOCK_THROWS(lost_error, errc::lost, body.get(on.io()));
}

BOOST_AUTO_TEST_CASE(it_waits_for_creates_that_are_under_way)
{
    shielded on;
    on.script->next(operation::create, step::hold());
    on.begin();
    auto shutting = on.start(on.locker->shutdown(1min));
    on.ready();
    BOOST_TEST(on.completions == 1);
    BOOST_TEST((on.result == errc::shutting_down));
    BOOST_TEST(!shutting.done());
    on.script->deliver();
    on.ready();
    BOOST_TEST_REQUIRE(shutting.done());
    BOOST_TEST(shutting.get(on.io()).clean());
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_try_that_is_granted_during_it_holds_nothing_afterwards)
{
    shielded on;
    on.script->next(operation::create, step::hold());
    auto trying = on.start(on.locker->try_acquire("k"));
    on.ready();
    auto shutting = on.start(on.locker->shutdown(1min));
    on.ready();
    on.script->deliver();
    on.ready();
    BOOST_TEST_REQUIRE(shutting.done());
    COLOCK_THROWS(create_error, errc::shutting_down, trying.get(on.io()));
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(each_has_its_own_deadline)
{
    shielded on;
    auto held = on.acquire("k", {.ttl = 1h});
    on.script->next(operation::release, step::hold());
    auto brief = on.start(on.locker->shutdown(5s));
    auto patient = on.start(on.locker->shutdown(1min));
    on.advance_by_steps(6s, 1s);
    BOOST_TEST(brief.done());
    BOOST_TEST(!brief.get(on.io()).clean());
    on.ready();
    BOOST_TEST(patient.done());
    on.script->deliver();
    on.ready();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(one_that_is_cancelled_leaves_no_timer)
{
    shielded on;
    auto held = on.acquire("k", {.ttl = 1h});
    on.script->next(operation::release, step::hold());
    asio::cancellation_signal cancel;
    error_code result;
    on.locker->async_shutdown(
        1h, asio::bind_cancellation_slot(cancel.slot(), [&](error_code code, shutdown_report) { result = code; }));
    on.ready();
    cancel.emit(asio::cancellation_type::total);
    on.ready();
    BOOST_TEST((result == asio::error::operation_aborted));
    on.script->deliver();
    on.ready();
    on.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
