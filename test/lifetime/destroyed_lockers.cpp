// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// The last handle of a locker ends its waiting acquires; its held locks outlive it.
#include "support/virtual_fixture.hpp"
#include "usual_options.hpp"

#include <utility>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(destroyed_lockers)

BOOST_AUTO_TEST_CASE(destroyed_locker_ends_its_waiters)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        colock::locker other_locker(env.memory);
        auto held = env.run(other_locker.acquire("k", endless));
        auto first = env.start(env.locker->acquire("k"));
        auto second = env.start(env.locker->acquire("k", shared));
        auto with = env.start(env.locker->with_lock("k", [] {}));
        auto all = env.start(env.locker->acquire_all({"a", "k"}));
        error_code front;
        env.locker->async_acquire("k", [&](error_code code, lock) { front = code; });
        env.ready();
        colock::locker copy = *env.locker;
        env.locker.reset();
        env.ready();
        BOOST_TEST(!first.done());
        {
            const auto last = std::move(copy);
        }
        env.ready();
        COLOCK_THROWS(create_error, errc::shutting_down, first.get(env.io()));
        COLOCK_THROWS(create_error, errc::shutting_down, second.get(env.io()));
        COLOCK_THROWS(create_error, errc::shutting_down, with.get(env.io()));
        COLOCK_THROWS(create_error, errc::shutting_down, all.get(env.io()));
        BOOST_TEST((front == errc::shutting_down));
        BOOST_TEST(env.stored().size() == 1U);
        held = {};
        env.wind_down_and_check();
    }
}

BOOST_AUTO_TEST_CASE(locks_outlive_their_locker)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        auto held = env.acquire("k");
        auto renewed = env.acquire("r", {.ttl = 30s, .renewal = renewal::automatic});
        auto dropped = env.acquire("d");
        auto lost = env.start(renewed.lost());
        env.locker.reset();
        env.script.reset();
        env.advance_by_steps(20s, 1s);
        BOOST_TEST(held.held());
        env.run(held.extend(1h));
        BOOST_TEST(env.run(held.is_locked()));
        env.advance_by_steps(1min, 1s);
        BOOST_TEST(renewed.held());
        BOOST_TEST(!lost.done());
        dropped = {};
        env.run(held.release(on_failure::raise));
        renewed = {};
        env.ready();
        BOOST_TEST((lost.get(env.io()) == lost_reason::released));
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(the_clean_up_outlives_locker_and_handle)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("k");
    env.script->next(operation::release, step::fail(errc::unavailable));
    env.script->next(operation::release, step::fail(errc::unavailable));
    held = {};
    env.locker.reset();
    env.ready();
    BOOST_TEST(env.stored().size() == 1U);
    env.wind_down();
    BOOST_TEST(env.script->unused_count() == 0U);
    env.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
