// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// The end of a lease, which is counted from the request that was answered.
#include "lease_ends.hpp"
#include "support/virtual_fixture.hpp"

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(lease_times)

BOOST_AUTO_TEST_CASE(grant_counts_from_its_request)
{
    for (const bool tries : {false, true}) {
        for (const auto kind : {backend_kind::immediate, backend_kind::scripted}) {
            virtual_fixture env(kind);
            env.script->next(operation::create, step::pass().after([&] { env.clock.skip(8s); }));
            const auto sent = lease_clock::now();
            const auto held = tries ? env.run(env.locker->try_acquire("k", {.ttl = 30s})).value()
                                    : env.run(env.locker->acquire("k", {.ttl = 30s}));
            BOOST_TEST(about(held.expires_at(), end_of(30s, sent)));
        }
    }
}

BOOST_AUTO_TEST_CASE(renewal_counts_from_its_request)
{
    for (const auto kind : {backend_kind::immediate, backend_kind::scripted}) {
        virtual_fixture env(kind);
        auto held = env.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
        lease_clock::time_point sent;
        env.script->next(operation::extend,
            step::pass().before([&] { sent = lease_clock::now(); }).after([&] { env.clock.skip(8s); }));
        env.advance(11s);
        BOOST_TEST_REQUIRE(env.script->count(operation::extend) == 1U);
        BOOST_TEST((held.expires_at() <= end_of(30s, sent)));
        BOOST_TEST((held.expires_at() > end_of(30s, sent) - 900ms));
        // The next renewal is due a third of the TTL after this one was requested, not after its answer.
        env.advance(1s);
        BOOST_TEST(env.script->count(operation::extend) == 1U);
        env.advance(2s);
        BOOST_TEST(env.script->count(operation::extend) == 2U);
    }
}

BOOST_AUTO_TEST_CASE(a_renewed_lock_keeps_the_ttl_of_its_last_extension)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
    env.run(held.extend(90s));
    env.script->forget_calls();
    env.advance_by_steps(29s, 1s);
    BOOST_TEST(env.script->count(operation::extend) == 0U);
    env.advance_by_steps(2s, 1s);
    BOOST_TEST_REQUIRE(env.script->count(operation::extend) == 1U);
    BOOST_TEST(env.script->calls().back().ttl == 90s);
    BOOST_TEST(held.ttl() == 90s);
}

BOOST_AUTO_TEST_CASE(max_hold_bounds_an_explicit_extension)
{
    for (const auto mode : {renewal::automatic, renewal::manual}) {
        for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
            virtual_fixture env(kind);
            const auto start = lease_clock::now();
            auto held = env.acquire("k", {.ttl = 10s, .renewal = mode, .max_hold = 25s});
            auto lost = env.start(held.lost());
            env.advance(5s);
            env.run(held.extend(1min));
            BOOST_TEST(about(held.expires_at(), start + 25s));
            env.advance_by_steps(19s, 1s);
            BOOST_TEST(held.held());
            env.advance(2s);
            BOOST_TEST(!held.held());
            BOOST_TEST_REQUIRE(lost.done());
            BOOST_TEST((lost.get(env.io()) == lost_reason::expired));
            env.wind_down_and_check();
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
