// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "cancellable_acquire.hpp"
#include "usual_options.hpp"

#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(cleanups)

BOOST_AUTO_TEST_CASE(cancelled_acquire_does_not_wait_and_its_cleanup_does_not_overtake_the_create)
{
    cancellable_acquire on;
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

BOOST_AUTO_TEST_CASE(create_that_arrives_during_the_cleanup_is_released)
{
    cancellable_acquire on;
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

BOOST_AUTO_TEST_CASE(create_that_arrives_after_the_release_is_released)
{
    cancellable_acquire on;
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
        cancellable_acquire on;
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
        cancellable_acquire on;
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
    cancellable_acquire on;
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

BOOST_AUTO_TEST_CASE(claim_in_doubt_ends_with_abandon_even_if_it_was_granted)
{
    for (const bool by_verb : {true, false}) {
        cancellable_acquire on;
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

BOOST_AUTO_TEST_CASE(claim_in_doubt_is_not_handed_over)
{
    cancellable_acquire on;
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
    cancellable_acquire on;
    on.script->next(operation::create, step::fail(errc::unavailable));
    on.begin({.retry = every_second});
    on.advance(2s);
    BOOST_TEST_REQUIRE(on.granted.held());
    on.granted = {};
    on.ready();
    BOOST_TEST(on.count(operation::release) == 1U);
    BOOST_TEST(on.count(operation::abandon) == 0U);
}

BOOST_AUTO_TEST_CASE(hand_over_with_unknown_outcome_leaves_both_claims_in_doubt)
{
    cancellable_acquire on;
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

BOOST_AUTO_TEST_CASE(late_grant_is_released_and_counts_as_an_attempt)
{
    cancellable_acquire on;
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

BOOST_AUTO_TEST_CASE(late_grant_of_a_claim_in_doubt_is_abandoned)
{
    cancellable_acquire on;
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

BOOST_AUTO_TEST_CASE(unproven_release_is_given_up_after_ttl_and_operation_timeout_and_counted)
{
    struct listener : observer
    {
        void settled(std::string_view, bool proven) noexcept override { settlements.push_back(proven); }
        std::vector<bool> settlements;
    };
    const auto observed = std::make_shared<listener>();
    cancellable_acquire on({.operation_timeout = 5s, .observer = observed});
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
    BOOST_TEST((observed->settlements == std::vector<bool>{false}));
    on.check_clean();
    BOOST_TEST(on.run(on.locker->shutdown(1s)).unproven == 1U);
}

BOOST_AUTO_TEST_CASE(cleanup_continues_for_the_longest_possible_ttl)
{
    // The lease ends in the locker long before it ends in the backend: after `max_hold`, or because the backend did not
    // receive the request for a shorter extension.
    for (const bool by_max_hold : {true, false}) {
        cancellable_acquire on({.operation_timeout = 5s});
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
        cancellable_acquire on;
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
        cancellable_acquire on;
        on.script->next(operation::create, step::busy());
        on.script->always(operation::wait, step::hold());
        on.script->next(operation::create, step::fail(code, "the last one"));
        auto acquiring = on.start(on.locker->acquire("k", {.retry = retry_policy::fixed(1s).jitter(0).times(1)}));
        on.advance(2s);
        const auto thrown = thrown_by<create_error>([&] { static_cast<void>(acquiring.get(on.io())); });
        BOOST_TEST_REQUIRE(thrown.has_value());
        BOOST_TEST((thrown->code() == code));
        BOOST_TEST(thrown->detail() == "the last one");
        BOOST_TEST(thrown->attempts() == 2U);
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_SUITE_END()
