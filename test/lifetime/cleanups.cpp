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
    cancellable_acquire env;
    env.script->next(operation::create, step::hold());
    env.begin();
    env.stop();
    BOOST_TEST(env.completions == 1);
    BOOST_TEST((env.result == asio::error::operation_aborted));
    env.advance_by_steps(10s, 1s);
    BOOST_TEST(env.count(operation::abandon) == 0U);
    BOOST_TEST(env.count(operation::release) == 0U);
    BOOST_TEST(env.locker->stats().settling == 1U);
    BOOST_TEST(env.idle());
    env.script->deliver();
    env.ready();
    BOOST_TEST(env.count(operation::abandon) + env.count(operation::release) == 1U);
    BOOST_TEST(env.locker->stats().settled == 1U);
    BOOST_TEST(env.locker->stats().unproven == 0U);
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(a_deadline_and_a_grant_in_the_same_instant_have_one_result)
{
    for (const bool deliver_first : {true, false}) {
        cancellable_acquire env;
        env.script->next(operation::create, step::hold());
        env.begin({.ttl = 1h, .retry = within(1min)});
        if (deliver_first)
            env.script->deliver();
        env.clock.skip(1min);
        if (!deliver_first)
            env.script->deliver();
        env.advance(1s);
        BOOST_TEST(env.completions == 1);
        BOOST_TEST(env.granted.held() == !env.result);
        if (env.result)
            BOOST_TEST((env.result == errc::retry_exhausted));
        env.granted = {};
        env.wind_down_and_check();
    }
}

BOOST_AUTO_TEST_CASE(a_repeated_create_has_the_same_token_and_finds_its_own_grant)
{
    cancellable_acquire env;
    env.script->next(operation::create, step::lose_reply());
    env.script->next(operation::create, step::lose_request());
    env.begin({.retry = every_second});
    env.advance_by_steps(3s, 100ms);
    BOOST_TEST_REQUIRE(env.completions == 1);
    BOOST_TEST(env.granted.held());
    BOOST_TEST(env.count(operation::create) == 3U);
    for (const auto& made : env.script->calls())
        BOOST_TEST((made.token == env.granted.token()));
    BOOST_TEST(env.locker->stats().attempts == 3U);
}

BOOST_AUTO_TEST_CASE(claim_in_doubt_ends_with_abandon_even_if_it_was_granted)
{
    for (const bool explicitly : {true, false}) {
        cancellable_acquire env;
        env.script->next(operation::create, step::lose_request());
        env.begin({.retry = every_second});
        env.advance(2s);
        BOOST_TEST_REQUIRE(env.granted.held());
        if (explicitly)
            env.run(env.granted.release(on_failure::raise));
        env.granted = {};
        env.ready();
        BOOST_TEST(env.count(operation::release) == 0U);
        BOOST_TEST(env.count(operation::abandon) == 1U);
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(claim_in_doubt_is_not_handed_over)
{
    cancellable_acquire env;
    env.script->next(operation::create, step::lose_request());
    env.begin({.retry = every_second});
    env.advance(2s);
    auto waiting = env.start(env.locker->acquire("k"));
    env.ready();
    env.granted = {};
    BOOST_TEST(waiting.get(env.io()).held());
    BOOST_TEST(env.count(operation::hand_over) == 0U);
    BOOST_TEST(env.count(operation::abandon) == 1U);
}

BOOST_AUTO_TEST_CASE(claim_that_is_not_in_doubt_ends_with_release)
{
    cancellable_acquire env;
    env.script->next(operation::create, step::fail(errc::unavailable));
    env.begin({.retry = every_second});
    env.advance(2s);
    BOOST_TEST_REQUIRE(env.granted.held());
    env.granted = {};
    env.ready();
    BOOST_TEST(env.count(operation::release) == 1U);
    BOOST_TEST(env.count(operation::abandon) == 0U);
}

BOOST_AUTO_TEST_CASE(hand_over_with_unknown_outcome_leaves_both_claims_in_doubt)
{
    cancellable_acquire env;
    auto held = env.acquire("k");
    env.begin({.retry = every_second});
    env.script->next(operation::hand_over, step::lose_reply());
    held = {};
    env.ready();
    env.advance_by_steps(3s, 100ms);
    BOOST_TEST_REQUIRE(env.completions == 1);
    BOOST_TEST(env.granted.held());
    BOOST_TEST(env.count(operation::release) == 0U);
    env.granted = {};
    env.wind_down();
    BOOST_TEST(env.count(operation::release) == 0U);
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(unproven_release_is_given_up_after_ttl_and_operation_timeout_and_counted)
{
    struct listener : observer
    {
        void settled(std::string_view, bool proven) noexcept override { settlements.push_back(proven); }
        std::vector<bool> settlements;
    };
    const auto observed = std::make_shared<listener>();
    cancellable_acquire env({.operation_timeout = 5s, .observer = observed});
    env.script->always(operation::abandon, step::fail(errc::unavailable));
    env.script->next(operation::create, step::lose_request());
    const auto sent = lease_clock::now();
    env.begin({.ttl = 20s});
    env.stop();
    env.advance_by_steps(24s, 1s);
    BOOST_TEST(env.locker->stats().settling == 1U);
    BOOST_TEST(env.locker->stats().unproven == 0U);
    env.advance_by_steps(4s, 1s);
    BOOST_TEST((lease_clock::now() - sent >= 25s));
    BOOST_TEST(env.locker->stats().settling == 0U);
    BOOST_TEST(env.locker->stats().settled == 1U);
    BOOST_TEST(env.locker->stats().unproven == 1U);
    BOOST_TEST((observed->settlements == std::vector<bool>{false}));
    env.check_clean();
    BOOST_TEST(env.run(env.locker->shutdown(1s)).unproven == 1U);
}

BOOST_AUTO_TEST_CASE(cleanup_continues_for_the_longest_possible_ttl)
{
    // The lease ends in the locker long before it ends in the backend: after `max_hold`, or because the backend did not
    // receive the request for a shorter extension.
    for (const bool by_max_hold : {true, false}) {
        cancellable_acquire env({.operation_timeout = 5s});
        acquire_options options{.ttl = 1h};
        if (by_max_hold)
            options.max_hold = 1s;
        env.begin(options);
        BOOST_TEST_REQUIRE(env.granted.held());
        env.script->always(operation::release, step::fail(errc::unavailable));
        env.script->always(operation::abandon, step::fail(errc::unavailable));
        if (!by_max_hold) {
            env.script->next(operation::extend, step::lose_request());
            COLOCK_THROWS(extend_error, errc::outcome_unknown, env.run(env.granted.extend(1s)));
        }
        env.granted = {};
        env.advance_by_steps(5min, 10s);
        BOOST_TEST(env.stored().size() == 1U);
        BOOST_TEST(env.locker->stats().unproven == 0U);
        BOOST_TEST(env.locker->stats().settling == 1U);
        env.script->reset();
        env.wind_down_and_check();
    }
}

BOOST_AUTO_TEST_CASE(a_refusal_is_thrown_at_once_with_its_cause)
{
    const auto cause = make_error_code(boost::system::errc::permission_denied);
    for (const auto code : {errc::access_denied, errc::misconfigured_backend, errc::unsupported}) {
        cancellable_acquire env;
        env.script->next(operation::create, step::fail(code, "because", cause));
        const auto thrown = required_error<create_error>([&] { static_cast<void>(env.acquire("k")); });
        BOOST_TEST((thrown.code() == code));
        BOOST_TEST((thrown.cause() == cause));
        BOOST_TEST(thrown.detail() == "because");
        BOOST_TEST(thrown.attempts() == 1U);
        BOOST_TEST(env.count(operation::create) == 1U);
        env.check_clean();
    }
}

BOOST_AUTO_TEST_SUITE_END()
