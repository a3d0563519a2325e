// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "cancellable_acquire.hpp"

#include <optional>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(leases)

BOOST_AUTO_TEST_CASE(renewed_lock_stays_and_leaves_no_timer_after_its_release)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        auto held = env.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
        env.advance_by_steps(5min, 1s);
        BOOST_TEST(held.held());
        BOOST_TEST(env.locker->stats().renewals >= 28U);
        BOOST_TEST(env.locker->stats().renewals <= 31U);
        BOOST_TEST(env.stored().size() == 1U);
        BOOST_TEST(!env.idle());
        held = {};
        env.check_clean();
    }
}

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
        env.wind_down();
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(renewal_survives_single_errors)
{
    for (const auto& how : {step::lose_request(), step::lose_reply(), step::fail(errc::unavailable),
             step::fail(errc::access_denied), step::pass().delay(4s)})
    {
        cancellable_acquire env;
        auto held = env.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
        env.script->next(operation::extend, how);
        env.advance_by_steps(2min, 500ms);
        BOOST_TEST(held.held());
        BOOST_TEST(env.script->unused_count() == 0U);
        BOOST_TEST(env.locker->stats().renewals > 8U);
    }
}

BOOST_AUTO_TEST_CASE(lease_that_cannot_be_renewed_is_lost_before_it_expires_in_the_backend)
{
    for (const auto& how : {step::fail(errc::unavailable), step::lose_request(), step::hold()}) {
        cancellable_acquire env;
        const auto start = lease_clock::now();
        auto held = env.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
        env.script->always(operation::extend, how);
        auto lost = env.start(held.lost());
        env.advance_by_steps(29s, 500ms);
        BOOST_TEST(!lost.done());
        BOOST_TEST(held.held());
        env.advance_by_steps(800ms, 100ms);
        BOOST_TEST((lease_clock::now() - start < 30s));
        BOOST_TEST_REQUIRE(lost.done());
        BOOST_TEST((lost.get(env.io()) == lost_reason::expired));
        BOOST_TEST(!held.held());
        BOOST_TEST(env.locker->stats().lost(lost_reason::expired) == 1U);
        env.script->reset();
        while (env.script->deliver()) {
        }
        env.wind_down();
        BOOST_TEST(env.locker->stats().settled == 1U);
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(loss_is_detected_by_a_local_timer_only_while_a_coroutine_waits_for_it)
{
    virtual_fixture env;
    auto held = env.acquire("k", {.ttl = 10s});
    BOOST_TEST(env.idle());
    auto lost = env.start(held.lost());
    BOOST_TEST(!env.idle());
    env.advance(11s);
    BOOST_TEST_REQUIRE(lost.done());
    BOOST_TEST((lost.get(env.io()) == lost_reason::expired));
    env.check_clean();
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
    env.wind_down();
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(errors_of_a_held_lock_count_from_their_own_call)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("k", {.ttl = 1h});
    env.clock.skip(10min);

    env.script->next(operation::extend, step::fail(errc::unavailable));
    const auto extend = thrown_by<extend_error>([&] { env.run(held.extend(1h)); });
    BOOST_TEST_REQUIRE(extend.has_value());
    BOOST_TEST(extend->attempts() == 1U);
    BOOST_TEST((extend->elapsed() < 1s));

    env.script->next(operation::is_valid, step::hold());
    auto valid = env.start(held.is_locked());
    env.advance_by_steps(6s, 1s);
    const auto unanswered = thrown_by<colock::error>([&] { static_cast<void>(valid.get(env.io())); });
    BOOST_TEST_REQUIRE(unanswered.has_value());
    BOOST_TEST(unanswered->attempts() == 1U);
    BOOST_TEST((unanswered->elapsed() >= 5s));
    BOOST_TEST((unanswered->elapsed() <= 6s));
    BOOST_TEST(env.script->deliver());
    env.ready();

    env.script->next(operation::release, step::not_held());
    const auto release = thrown_by<release_error>([&] { env.run(held.release(on_failure::raise)); });
    BOOST_TEST_REQUIRE(release.has_value());
    BOOST_TEST(release->attempts() == 1U);
    BOOST_TEST((release->elapsed() < 1s));

    // Nothing is sent for a lock that has ended.
    auto expired = env.acquire("l", {.ttl = 10s});
    env.clock.skip(20s);
    const auto detach = thrown_by<colock::error>([&] { static_cast<void>(env.run(expired.detach())); });
    BOOST_TEST_REQUIRE(detach.has_value());
    BOOST_TEST(detach->attempts() == 0U);
    BOOST_TEST((detach->elapsed() < 1s));
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

BOOST_AUTO_TEST_CASE(an_extend_waits_for_a_renewal)
{
    cancellable_acquire env;
    auto held = env.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
    env.script->next(operation::extend, step::hold());
    env.advance(11s);
    auto extending = env.start(held.extend(60s));
    env.ready();
    BOOST_TEST(env.count(operation::extend) == 1U);
    env.script->deliver();
    extending.get(env.io());
    BOOST_TEST(env.count(operation::extend) == 2U);
    BOOST_TEST(held.ttl() == 60s);
}

BOOST_AUTO_TEST_CASE(a_renewal_that_finds_another_holder_is_a_loss)
{
    cancellable_acquire env;
    auto held = env.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
    auto lost = env.start(held.lost());
    colock::locker other_locker(env.memory);
    env.run(other_locker.break_lock("k"));
    auto thief = env.run(other_locker.acquire("k"));
    env.advance(11s);
    BOOST_TEST_REQUIRE(lost.done());
    // The memory store reports the break itself. A remote backend reports it only in the answer to the renewal.
    BOOST_TEST((lost.get(env.io()) != lost_reason::released));
    env.wind_down();
    BOOST_TEST(thief.held());
    BOOST_TEST(env.run(thief.is_locked()));

    cancellable_acquire other;
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
    virtual_fixture env;
    const auto start = lease_clock::now();
    auto held = env.acquire("k", {.ttl = 10s, .renewal = renewal::automatic, .max_hold = 25s});
    auto lost = env.start(held.lost());
    env.advance_by_steps(24s, 500ms);
    BOOST_TEST(!lost.done());
    env.advance_by_steps(2s, 500ms);
    BOOST_TEST_REQUIRE(lost.done());
    BOOST_TEST((lost.get(env.io()) == lost_reason::expired));
    BOOST_TEST((lease_clock::now() - start < 30s));
    env.wind_down();
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(adapter_may_report_a_loss_or_a_shorter_session)
{
    cancellable_acquire env;
    auto held = env.acquire("k", {.ttl = 1h});
    auto lost = env.start(held.lost());
    env.ready();
    const auto end = env.run(colock::locker(env.memory).break_lock("k"));
    BOOST_TEST(end.size() == 1U);
    env.ready();
    BOOST_TEST_REQUIRE(lost.done());
    BOOST_TEST((lost.get(env.io()) == lost_reason::broken));
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

BOOST_AUTO_TEST_CASE(a_release_that_is_not_answered_ends_after_the_operation_timeout)
{
    for (const auto report : {on_failure::quiet, on_failure::raise}) {
        cancellable_acquire env({.operation_timeout = 2s});
        auto held = env.acquire("k");
        env.script->next(operation::release, step::hold());
        auto releasing = env.start(held.release(report));
        env.advance_by_steps(1900ms, 100ms);
        BOOST_TEST(!releasing.done());
        env.advance(200ms);
        BOOST_TEST_REQUIRE(releasing.done());
        if (report == on_failure::quiet)
            BOOST_CHECK_NO_THROW(releasing.get(env.io()));
        else
            COLOCK_THROWS(release_error, errc::outcome_unknown, releasing.get(env.io()));
        BOOST_TEST(env.locker->stats().settling == 1U);
        env.script->deliver();
        env.ready();
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_retried_release_never_removes_a_newer_lock)
{
    cancellable_acquire env;
    auto held = env.acquire("k");
    env.script->next(operation::release, step::lose_reply());
    held = {};
    env.ready();
    colock::locker other_locker(env.memory);
    auto newer = env.run(other_locker.acquire("k"));
    env.wind_down();
    BOOST_TEST(env.count(operation::release) > 1U);
    BOOST_TEST(env.run(newer.is_locked()));
    BOOST_TEST(env.locker->stats().settling == 0U);
}

BOOST_AUTO_TEST_CASE(an_expired_lock_is_released_without_touching_its_successor)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        auto expired = env.acquire("k", {.ttl = 1s});
        env.clock.skip(2s);
        auto next = env.acquire("k");
        env.run(expired.release());
        BOOST_TEST(next.held());
        BOOST_TEST(env.run(next.is_locked()));
        expired = {};
        env.ready();
        BOOST_TEST(env.stored().size() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(unanswered_query_or_extend_ends_after_the_operation_timeout)
{
    cancellable_acquire env({.operation_timeout = 2s});
    auto held = env.acquire("k", {.ttl = 1h});
    env.script->next(operation::extend, step::hold());
    auto extending = env.start(held.extend(1h));
    env.advance(3s);
    BOOST_TEST_REQUIRE(extending.done());
    COLOCK_THROWS(extend_error, errc::outcome_unknown, extending.get(env.io()));
    BOOST_TEST(held.held());
    env.script->deliver();
    env.ready();
    env.script->next(operation::is_valid, step::hold());
    auto asking = env.start(held.is_locked());
    env.advance(3s);
    BOOST_TEST_REQUIRE(asking.done());
    COLOCK_THROWS(error, errc::unavailable, asking.get(env.io()));
    env.script->deliver();
    env.ready();
    env.script->next(operation::inspect, step::hold());
    auto looking = env.start(env.locker->is_locked("k"));
    env.advance(3s);
    BOOST_TEST(looking.done());
    if (looking.done())
        COLOCK_THROWS(error, errc::unavailable, looking.get(env.io()));
    env.script->deliver();
    env.ready();
    BOOST_TEST(env.idle());
}

BOOST_AUTO_TEST_SUITE_END()
