// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/rig.hpp"
#include "usual_options.hpp"

#include <string>
#include <string_view>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// One lock that somebody else holds until it is broken.
struct broken_for : rig
{
    colock::locker other{script};
    lock stuck = run(other.acquire("k"));

    broken_for() : rig(behind::scripted) {}
};

} // namespace

BOOST_AUTO_TEST_SUITE(breaks)

BOOST_AUTO_TEST_CASE(a_lock_that_was_granted_after_the_break_stands)
{
    broken_for on;
    // Both answers arrive before either coroutine goes on.
    auto broken = on.start(on.locker->break_lock("k"));
    auto acquired = on.start(on.locker->acquire("k"));
    on.ready();
    BOOST_TEST(broken.get(on.io()).size() == 1U);
    lock fresh = acquired.get(on.io());
    BOOST_TEST(fresh.held());
    BOOST_TEST(on.run(fresh.is_locked()));
    on.run(fresh.release(on_failure::raise));
    on.stuck = {};
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_lock_that_was_granted_before_the_break_arrived_has_ended)
{
    rig on(behind::scripted);
    lock late;
    // Sent before the grant was known, carried out after it.
    on.script->next(operation::break_key, step::pass().before([&] { late = on.run(on.locker->acquire("k")); }));
    on.run(on.locker->break_lock("k"));
    BOOST_TEST(!late.held());
    BOOST_TEST((on.run(late.lost()) != lost_reason::released));
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(all_holders_of_this_locker_hear_of_it_at_once)
{
    rig on(behind::scripted);
    auto first = on.acquire("k", shared);
    auto second = on.acquire("k", shared);
    auto elsewhere = on.acquire("other");
    BOOST_TEST(on.run(on.locker->break_lock("k")).size() == 2U);
    BOOST_TEST((on.run(first.lost()) == lost_reason::broken));
    BOOST_TEST((on.run(second.lost()) == lost_reason::broken));
    BOOST_TEST(elsewhere.held());
    elsewhere = {};
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(one_that_cannot_be_asked_about_is_kept)
{
    broken_for on;
    on.script->next(operation::is_valid, step::fail(errc::unavailable));
    auto broken = on.start(on.locker->break_lock("k"));
    auto acquired = on.start(on.locker->acquire("k"));
    on.ready();
    BOOST_TEST(broken.get(on.io()).size() == 1U);
    BOOST_TEST(on.script->unused() == 0U);
    lock fresh = acquired.get(on.io());
    BOOST_TEST(fresh.held());
    fresh = {};
    on.stuck = {};
    on.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(waits)

namespace {

/// Lets go of a lock as soon as somebody waits.
struct giver : observer
{
    lock held;
    void waiting(std::string_view) noexcept override { held = {}; }
};

} // namespace

BOOST_AUTO_TEST_CASE(no_operation_begins_for_a_claim_before_its_wait_has)
{
    auto seen = std::make_shared<giver>();
    rig on(behind::scripted, {.observer = seen});
    seen->held = on.acquire("k");
    on.script->forget_calls();
    lock next = on.run(on.locker->acquire("k"));
    BOOST_TEST(next.held());
    bool waits = false;
    for (const auto& call : on.script->calls()) {
        if (call.what == operation::wait) {
            BOOST_TEST(!waits);
            waits = true;
        }
        BOOST_TEST((call.what != operation::hand_over || waits), "handed over before the wait began");
    }
    next = {};
    on.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(expiries)

BOOST_AUTO_TEST_CASE(a_release_sees_that_another_holder_has_expired)
{
    rig on(behind::memory);
    colock::locker other(on.memory);
    auto brief = on.acquire("k", {.ttl = 10s, .mode = lock_mode::shared});
    auto longer = on.acquire("k", {.ttl = 1h, .mode = lock_mode::shared});
    auto writer = on.start(other.acquire("k", {.retry = retry_policy::fixed(24h)}));
    on.ready();
    // The writer's own timer looks in an hour, and nobody looks at the holder that has expired.
    on.clock.skip(11s);
    on.run(longer.release());
    on.ready();
    BOOST_TEST_REQUIRE(writer.done());
    BOOST_TEST(writer.get(on.io()).held());
    brief = {};
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_waiter_hears_of_an_expiry_that_comes_sooner)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
            for (const bool waits_here : {true, false}) {
                rig on(kind);
                colock::locker other(on.backend());
                auto held = on.acquire("k", {.ttl = 6h, .mode = mode});
                auto& by = waits_here ? *on.locker : other;
                auto waiting = on.start(by.acquire("k", {.retry = retry_policy::fixed(24h)}));
                on.ready();
                on.run(held.extend(1min));
                on.advance(61s);
                BOOST_TEST_REQUIRE(waiting.done());
                static_cast<void>(waiting.get(on.io()));
                held = {};
                on.check_clean();
            }
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
