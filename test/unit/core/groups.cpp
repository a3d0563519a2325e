// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "groups.hpp"

#include <algorithm>
#include <string>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(groups)

BOOST_AUTO_TEST_CASE(all_or_none_in_one_canonical_order)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture on(kind);
        auto group = on.run(on.locker->acquire_all({"b", "a", "c", "b"}));
        BOOST_TEST(group.size() == 3U);
        BOOST_TEST(group.locks()[0].key() == "a");
        BOOST_TEST(group.locks()[1].key() == "b");
        BOOST_TEST(group.locks()[2].key() == "c");
        for (const auto& status : on.stored())
            BOOST_TEST(status.group == group.id());
        BOOST_TEST(on.run(on.locker->list({.group = group.id()})).size() == 3U);
        on.run(group.acquire("0"));
        BOOST_TEST(group.size() == 4U);
        BOOST_TEST(on.run(on.locker->list({.group = group.id()})).size() == 4U);
        const auto extended = on.run(group.extend(50s));
        BOOST_TEST_REQUIRE(extended.size() == 4U);
        BOOST_TEST(extended[0].key == "0");
        BOOST_TEST(extended[3].key == "a");
        COLOCK_THROWS(retry_error, errc::retry_exhausted,
            on.run(on.locker->acquire_all({"x", "b", "y"}, {.retry = retry_policy::never()})));
        on.ready();
        BOOST_TEST(on.stored().size() == 4U);
        on.run(on.locker->break_lock("b"));
        const auto partial = on.run(group.extend(50s));
        BOOST_TEST_REQUIRE(partial.size() == 4U);
        BOOST_TEST((partial[2].key == "b" && partial[2].status == errc::not_held));
        BOOST_TEST((!partial[0].status && !partial[1].status && !partial[3].status));
        BOOST_TEST(!group.held());
        const auto released = on.run(group.release());
        BOOST_TEST_REQUIRE(released.size() == 4U);
        BOOST_TEST(released[0].key == "0");
        BOOST_TEST((released[2].key == "b" && released[2].status == errc::not_held));
        BOOST_TEST(!released[3].status);
        BOOST_TEST(group.empty());
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(partial_extension_of_a_group_is_reported)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture on(kind);
        auto group = on.run(on.locker->acquire_all({"a", "c"}));
        on.run(group.acquire("b", {.ttl = 0ms}));
        on.run(group.acquire("d"));
        const auto refused = thrown_by<validation_error>([&] { static_cast<void>(on.run(group.extend(50s))); });
        BOOST_TEST_REQUIRE(refused.has_value());
        BOOST_TEST((refused->code() == errc::invalid_ttl));
        BOOST_TEST(refused->key() == "b");
        for (const auto& each : group.locks())
            BOOST_TEST((each.ttl() == (each.key() == "b" ? 0s : 30s)));
        if (on.script)
            BOOST_TEST(on.script->count(operation::extend) == 0U);
        for (const auto& report : on.run(group.release()))
            BOOST_TEST(!report.status);
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(group_holds_lower_keys_while_it_waits)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture on(kind);
        auto busy = on.acquire("b");
        auto waiting = on.start(on.locker->acquire_all({"a", "b", "c"}));
        on.ready();
        BOOST_TEST(!waiting.done());
        const auto held = on.stored();
        BOOST_TEST_REQUIRE(held.size() == 2U);
        BOOST_TEST(std::ranges::none_of(held, [](const lock_status& each) { return each.key == "c"; }));
        on.run(busy.release());
        auto group = waiting.get(on.io());
        BOOST_TEST(group.held());
        BOOST_TEST(on.stored().size() == 3U);
        on.run(group.release());
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_group_survives_a_passing_failure)
{
    virtual_fixture on(backend_kind::scripted);
    take_one_by_one(on);
    on.script->next(operation::create, step::pass());
    on.script->next(operation::create, step::fail(errc::unavailable));
    auto waiting = on.start(on.locker->acquire_all({"a", "b"}));
    on.advance_by_steps(10s, 1s);
    BOOST_TEST_REQUIRE(waiting.done());
    auto group = waiting.get(on.io());
    BOOST_TEST(group.held());
    on.run(group.release());
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(group_continues_at_the_key_that_was_busy)
{
    for (const bool fifo : {true, false}) {
        virtual_fixture on(backend_kind::scripted);
        take_one_by_one(on, fifo);
        colock::locker other_locker(on.memory);
        auto busy = on.run(other_locker.acquire("b"));
        auto waiting = on.start(on.locker->acquire_all({"c", "b", "a"}));
        on.ready();
        BOOST_TEST(on.stored().size() == 2U);
        expect(keys_of(*on.script, {operation::create}), {"a", "b"});
        on.script->forget_calls();
        on.run(busy.release());
        auto group = waiting.get(on.io());
        expect(keys_of(*on.script, {operation::create}), {"b", "c"});
        BOOST_TEST(group.held());
        BOOST_TEST(group.locks()[2].key() == "c");
        on.run(group.release());
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(lock_of_the_same_locker_is_handed_over_to_a_group)
{
    for (const bool fifo : {true, false}) {
        virtual_fixture on(backend_kind::scripted);
        take_one_by_one(on, fifo);
        auto busy = on.acquire("b");
        auto waiting = on.start(on.locker->acquire_all({"a", "b"}));
        on.ready();
        on.run(busy.release());
        auto group = waiting.get(on.io());
        BOOST_TEST(on.script->count(operation::hand_over) == 1U);
        waiting = on.start(on.locker->acquire_all({"a", "b"}));
        on.ready();
        on.run(group.release());
        on.run(waiting.get(on.io()).release());
        BOOST_TEST(on.script->count(operation::hand_over) >= 2U);
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(group_is_granted_as_soon_as_the_key_is_free)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        for (const auto after : {5ms, 50ms, 700ms}) {
            virtual_fixture on(kind);
            colock::locker other_locker(on.memory);
            auto busy = on.run(other_locker.acquire("b"));
            auto waiting = on.start(on.locker->acquire_all({"a", "b"}, {.retry = retry_policy::fixed(1h)}));
            on.ready();
            on.advance_by_steps(after, 5ms);
            BOOST_TEST(!waiting.done());
            on.run(busy.release());
            on.ready();
            BOOST_TEST_REQUIRE(waiting.done());
            on.run(waiting.get(on.io()).release());
            on.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(a_group_keeps_to_the_delays_of_its_policy)
{
    for (const bool fifo : {true, false}) {
        virtual_fixture on(backend_kind::scripted);
        take_one_by_one(on, fifo);
        slow_down(*on.script, 5ms);
        colock::locker other_locker(on.memory);
        const auto busy = on.run(other_locker.acquire("b", {.ttl = 1h}));
        std::vector<std::size_t> attempt_numbers;
        const auto policy = retry_policy::custom([&](const retry_attempt& attempt) -> retry_decision {
            attempt_numbers.push_back(attempt.number);
            if (attempt.number == 4)
                return retry_stop;
            return 1min;
        });
        auto waiting = on.start(on.locker->acquire_all({"a", "b", "c"}, {.retry = policy}));
        while (attempt_numbers.size() < 4)
            on.advance(1s);
        // One attempt at once, and one after each minute.
        expect(keys_of(*on.script, {operation::create}), {"a", "b", "b", "b", "b"});
        while (!waiting.done())
            on.advance(1s);
        const auto failed = thrown_by<retry_error>([&] { static_cast<void>(waiting.get(on.io())); });
        BOOST_TEST_REQUIRE(failed.has_value());
        BOOST_TEST((failed->code() == errc::retry_exhausted));
        BOOST_TEST(failed->attempts() == 5U);
        BOOST_TEST(failed->key() == "b");
        BOOST_TEST((failed->elapsed() >= 4min));
        BOOST_TEST(attempt_numbers.size() == 5U);
        // The release in the background takes time.
        on.advance(1s);
        BOOST_TEST(on.stored().size() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(group_that_gives_up_reports_the_reason)
{
    // The key is always busy. The time may end while a later attempt is unanswered.
    for (const auto total : {100000ms, 100200ms, 100400ms, 100900ms}) {
        virtual_fixture on(backend_kind::scripted);
        take_one_by_one(on);
        slow_down(*on.script, 500ms);
        colock::locker other_locker(on.memory);
        const auto busy = on.run(other_locker.acquire("b", {.ttl = 1h}));
        auto waiting = on.start(
            on.locker->acquire_all({"a", "b"}, {.retry = retry_policy::fixed(25s).jitter(0.0).total_time(total)}));
        on.advance_by_steps(110s, 100ms);
        BOOST_TEST_REQUIRE(waiting.done());
        COLOCK_THROWS(retry_error, errc::retry_exhausted, waiting.get(on.io()));
        on.wind_down();
    }
    // The last attempt ended with an error.
    virtual_fixture on(backend_kind::scripted);
    take_one_by_one(on);
    on.script->next(operation::create, step::pass());
    on.script->next(operation::create, step::busy());
    on.script->next(operation::create, step::fail(errc::unavailable, "out for lunch"));
    auto waiting = on.start(on.locker->acquire_all({"a", "b"}, {.retry = retry_policy::fixed(1s).times(1)}));
    on.advance_by_steps(5s, 100ms);
    BOOST_TEST_REQUIRE(waiting.done());
    const auto failed = thrown_by<create_error>([&] { static_cast<void>(waiting.get(on.io())); });
    BOOST_TEST_REQUIRE(failed.has_value());
    BOOST_TEST((failed->code() == errc::unavailable));
    BOOST_TEST(failed->detail() == "out for lunch");
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(no_group_is_returned_after_one_of_its_leases_ended)
{
    const acquire_options options{.ttl = 1s, .retry = retry_policy::fixed(300ms).jitter(0.0).times(2)};
    virtual_fixture on(backend_kind::scripted);
    take_one_by_one(on);
    on.script->always(operation::extend, step::fail(errc::unavailable));
    // The first lease ends once: the group starts again.
    end_first_lease(*on.script);
    auto waiting = on.start(on.locker->acquire_all({"a", "b"}, options));
    on.ready();
    BOOST_TEST(!waiting.done());
    on.advance(300ms);
    auto group = waiting.get(on.io());
    BOOST_TEST(group.held());
    BOOST_TEST(on.script->count(operation::create) == 4U);
    on.run(group.release());
    // The first lease ends each time: the group reports it.
    for (int i = 0; i < 3; ++i)
        end_first_lease(*on.script);
    waiting = on.start(on.locker->acquire_all({"a", "b"}, options));
    on.advance_by_steps(2s, 100ms);
    BOOST_TEST_REQUIRE(waiting.done());
    COLOCK_THROWS(create_error, errc::unavailable, waiting.get(on.io()));
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
