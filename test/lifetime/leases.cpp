// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "cancellable_acquire.hpp"

#include <optional>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(leases)

BOOST_AUTO_TEST_CASE(the_time_to_connect_is_not_taken_from_the_ttl)
{
    for (const bool tries : {true, false}) {
        virtual_fixture env(backend_kind::scripted);
        env.script->next(operation::create, step::hold());
        std::optional<running<std::optional<lock>>> trying;
        std::optional<running<lock>> acquiring;
        if (tries)
            trying = env.start(env.locker->try_acquire("k", {.ttl = 5s}));
        else
            acquiring = env.start(env.locker->acquire("k", {.ttl = 5s}));
        env.advance(20s);
        env.script->contact().set_up(lease_clock::now());
        const auto connected = lease_clock::now();
        env.advance(1s);
        env.script->deliver();
        env.ready();
        lock held = tries ? trying->get(env.io()).value_or(lock()) : acquiring->get(env.io());
        BOOST_TEST(held.held());
        BOOST_TEST((held.expires_at() <= connected + 5s));
        BOOST_TEST((held.expires_at() > connected + 4900ms));
        // For a later connection, it is unknown which requests were sent before.
        env.script->contact().set_down(errc::unavailable);
        env.script->next(operation::create, step::hold());
        auto late = env.start(env.locker->try_acquire("late", {.ttl = 5s}));
        env.advance(20s);
        env.script->contact().set_up(lease_clock::now());
        env.script->deliver();
        COLOCK_THROWS(create_error, errc::unavailable, late.get(env.io()));
        held = {};
        env.wind_down_and_check();
    }
}

BOOST_AUTO_TEST_CASE(a_loss_is_sticky)
{
    cancellable_acquire env;
    auto held = env.acquire("k", {.ttl = 10s});
    env.script->next(operation::extend, step::hold());
    auto extending = env.start(held.extend(1h));
    env.ready();
    // Nobody waits for the end, and the answer is late. The lock was not held for a moment, so it stays lost.
    env.clock.skip(9950ms);
    BOOST_TEST(!held.held());
    env.script->deliver();
    env.ready();
    BOOST_TEST(!held.held());
    COLOCK_THROWS(extend_error, errc::not_held, extending.get(env.io()));
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(errors_of_a_held_lock_count_from_their_own_call)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("k", {.ttl = 1h});
    env.clock.skip(10min);

    env.script->next(operation::extend, step::fail(errc::unavailable));
    const auto extend = required_error<extend_error>([&] { env.run(held.extend(1h)); });
    BOOST_TEST(extend.attempts() == 1U);
    BOOST_TEST((extend.elapsed() < 1s));

    env.script->next(operation::is_valid, step::hold());
    auto valid = env.start(held.is_locked());
    env.advance_by_steps(6s, 1s);
    const auto unanswered = required_error<colock::error>([&] { static_cast<void>(valid.get(env.io())); });
    BOOST_TEST(unanswered.attempts() == 1U);
    BOOST_TEST((unanswered.elapsed() >= 5s));
    BOOST_TEST((unanswered.elapsed() <= 6s));
    BOOST_TEST(env.script->deliver());
    env.ready();

    env.script->next(operation::release, step::not_held());
    const auto release = required_error<release_error>([&] { env.run(held.release(on_failure::raise)); });
    BOOST_TEST(release.attempts() == 1U);
    BOOST_TEST((release.elapsed() < 1s));

    // Nothing is sent for a lock that has ended.
    auto expired = env.acquire("l", {.ttl = 10s});
    env.clock.skip(20s);
    const auto detach = required_error<colock::error>([&] { static_cast<void>(env.run(expired.detach())); });
    BOOST_TEST(detach.attempts() == 0U);
    BOOST_TEST((detach.elapsed() < 1s));
}

BOOST_AUTO_TEST_CASE(a_renewal_is_awaited_before_the_release_is_sent)
{
    for (const bool explicitly : {true, false}) {
        cancellable_acquire env;
        auto held = env.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
        env.script->next(operation::extend, step::hold());
        env.advance(11s);
        BOOST_TEST_REQUIRE(env.count(operation::extend) == 1U);
        std::optional<running<void>> releasing;
        if (explicitly)
            releasing = env.start(held.release());
        else
            held = {};
        env.ready();
        BOOST_TEST(!held.held());
        BOOST_TEST(env.count(operation::release) == 0U);
        BOOST_TEST(env.count(operation::abandon) == 0U);
        env.advance(1s);
        BOOST_TEST(env.count(operation::release) == 0U);
        env.script->deliver();
        env.ready();
        BOOST_TEST(env.count(operation::release) == 1U);
        BOOST_TEST(env.count(operation::extend) == 1U);
        if (releasing)
            releasing->get(env.io());
        env.check_clean();
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(giving_back)

BOOST_AUTO_TEST_CASE(quiet_release_never_throws_and_raising_release_does)
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
            cancellable_acquire env;
            auto held = env.acquire("k");
            env.script->next(operation::release, row.how);
            if (report == on_failure::quiet)
                BOOST_CHECK_NO_THROW(env.run(held.release()));
            else
                COLOCK_THROWS(release_error, row.code, env.run(held.release(report)));
            BOOST_TEST(!held.held());
            env.wind_down();
            BOOST_TEST(env.locker->stats().settled == 1U);
            env.check_clean();
        }
    }
    cancellable_acquire env;
    auto held = env.acquire("k");
    env.script->next(operation::release, step::not_held());
    COLOCK_THROWS(release_error, errc::not_held, env.run(held.release(on_failure::raise)));
    BOOST_CHECK_NO_THROW(env.run(held.release(on_failure::raise)));
}

BOOST_AUTO_TEST_SUITE_END()
