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
        virtual_fixture on(kind);
        colock::locker other_locker(on.memory);
        auto held = on.run(other_locker.acquire("k", endless));
        auto first = on.start(on.locker->acquire("k"));
        auto second = on.start(on.locker->acquire("k", shared));
        auto with = on.start(on.locker->with_lock("k", [] {}));
        auto all = on.start(on.locker->acquire_all({"a", "k"}));
        error_code front;
        on.locker->async_acquire("k", [&](error_code code, lock) { front = code; });
        on.ready();
        colock::locker copy = *on.locker;
        on.locker.reset();
        on.ready();
        BOOST_TEST(!first.done());
        {
            const auto last = std::move(copy);
        }
        on.ready();
        COLOCK_THROWS(create_error, errc::shutting_down, first.get(on.io()));
        COLOCK_THROWS(create_error, errc::shutting_down, second.get(on.io()));
        COLOCK_THROWS(create_error, errc::shutting_down, with.get(on.io()));
        COLOCK_THROWS(create_error, errc::shutting_down, all.get(on.io()));
        BOOST_TEST((front == errc::shutting_down));
        BOOST_TEST(on.stored().size() == 1U);
        held = {};
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(locks_outlive_their_locker)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture on(kind);
        auto held = on.acquire("k");
        auto renewed = on.acquire("r", {.ttl = 30s, .renewal = renewal::automatic});
        auto dropped = on.acquire("d");
        auto lost = on.start(renewed.lost());
        on.locker.reset();
        on.script.reset();
        on.advance_by_steps(20s, 1s);
        BOOST_TEST(held.held());
        on.run(held.extend(1h));
        BOOST_TEST(on.run(held.is_locked()));
        on.advance_by_steps(1min, 1s);
        BOOST_TEST(renewed.held());
        BOOST_TEST(!lost.done());
        dropped = {};
        on.run(held.release(on_failure::raise));
        renewed = {};
        on.ready();
        BOOST_TEST((lost.get(on.io()) == lost_reason::released));
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(the_clean_up_outlives_locker_and_handle)
{
    virtual_fixture on(backend_kind::scripted);
    auto held = on.acquire("k");
    on.script->next(operation::release, step::fail(errc::unavailable));
    on.script->next(operation::release, step::fail(errc::unavailable));
    held = {};
    on.locker.reset();
    on.ready();
    BOOST_TEST(on.stored().size() == 1U);
    on.wind_down();
    BOOST_TEST(on.script->unused() == 0U);
    on.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
