// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "groups.hpp"

#include <utility>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(groups)

BOOST_AUTO_TEST_CASE(lock_of_a_group_is_found_by_its_key)
{
    virtual_fixture env(backend_kind::memory);
    auto group = env.run(env.locker->acquire_all({"b", "a"}));
    for (const auto& each : group.locks())
        BOOST_TEST(&group.at(each.key()) == &each);
    BOOST_CHECK_EXCEPTION(static_cast<void>(group.at("c")), validation_error, [](const validation_error& refused) {
        return refused.code() == errc::invalid_options && refused.key() == "c";
    });
    BOOST_CHECK_THROW(static_cast<void>(lock_group().at("a")), validation_error);
    const auto taken = group.take("a");
    BOOST_CHECK_THROW(static_cast<void>(group.at("a")), validation_error);
    BOOST_TEST(group.at("b").held());
}

BOOST_AUTO_TEST_CASE(all_or_none_in_one_canonical_order)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        auto group = env.run(env.locker->acquire_all({"b", "a", "c", "b"}));
        BOOST_TEST(group.size() == 3U);
        BOOST_TEST(group.locks()[0].key() == "a");
        BOOST_TEST(group.locks()[1].key() == "b");
        BOOST_TEST(group.locks()[2].key() == "c");
        for (const auto& status : env.stored())
            BOOST_TEST(status.group == group.id());
        BOOST_TEST(env.run(env.locker->list({.group = group.id()})).size() == 3U);
        env.run(group.acquire("0"));
        BOOST_TEST(group.size() == 4U);
        BOOST_TEST(env.run(env.locker->list({.group = group.id()})).size() == 4U);
        const auto extended = env.run(group.extend(50s));
        BOOST_TEST_REQUIRE(extended.size() == 4U);
        BOOST_TEST(extended[0].key == "0");
        BOOST_TEST(extended[3].key == "a");
        COLOCK_THROWS(retry_error, errc::retry_exhausted,
            env.run(env.locker->acquire_all({"x", "b", "y"}, {.retry = retry_policy::never()})));
        env.ready();
        BOOST_TEST(env.stored().size() == 4U);
        env.run(env.locker->break_lock("b"));
        const auto partial = env.run(group.extend(50s));
        BOOST_TEST_REQUIRE(partial.size() == 4U);
        BOOST_TEST((partial[2].key == "b" && partial[2].status == errc::not_held));
        BOOST_TEST((!partial[0].status && !partial[1].status && !partial[3].status));
        BOOST_TEST(!group.held());
        const auto released = env.run(group.release());
        BOOST_TEST_REQUIRE(released.size() == 4U);
        BOOST_TEST(released[0].key == "0");
        BOOST_TEST((released[2].key == "b" && released[2].status == errc::not_held));
        BOOST_TEST(!released[3].status);
        BOOST_TEST(group.empty());
        env.wind_down_and_check();
    }
}

BOOST_AUTO_TEST_CASE(partial_extension_of_a_group_is_reported)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        auto group = env.run(env.locker->acquire_all({"a", "c"}));
        env.run(group.acquire("b", {.ttl = 0ms}));
        env.run(group.acquire("d"));
        const auto refused = required_error<validation_error>([&] { static_cast<void>(env.run(group.extend(50s))); });
        BOOST_TEST((refused.code() == errc::invalid_ttl));
        BOOST_TEST(refused.key() == "b");
        for (const auto& each : group.locks())
            BOOST_TEST((each.ttl() == (each.key() == "b" ? 0s : 30s)));
        if (env.script)
            BOOST_TEST(env.script->count(operation::extend) == 0U);
        for (const auto& report : env.run(group.release()))
            BOOST_TEST(!report.status);
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(group_continues_at_the_key_that_was_busy)
{
    for (const bool fifo : {true, false}) {
        virtual_fixture env(backend_kind::scripted);
        disable_create_all(env, fifo);
        colock::locker other_locker(env.memory);
        auto busy = env.run(other_locker.acquire("b"));
        auto waiting = env.start(env.locker->acquire_all({"c", "b", "a"}));
        env.ready();
        BOOST_TEST(env.stored().size() == 2U);
        expect(keys_of(*env.script, {operation::create}), {"a", "b"});
        env.script->forget_calls();
        env.run(busy.release());
        auto group = waiting.get(env.io());
        expect(keys_of(*env.script, {operation::create}), {"b", "c"});
        BOOST_TEST(group.held());
        BOOST_TEST(group.locks()[2].key() == "c");
        env.run(group.release());
        env.wind_down_and_check();
    }
}

BOOST_AUTO_TEST_CASE(lock_of_the_same_locker_is_handed_over_to_a_group)
{
    for (const auto& [fifo, at_once] : {std::pair{true, true}, {true, false}, {false, true}, {false, false}}) {
        virtual_fixture env(backend_kind::scripted);
        set_capabilities(env, fifo, at_once);
        auto busy = env.acquire("b");
        auto waiting = env.start(env.locker->acquire_all({"a", "b"}));
        env.ready();
        env.run(busy.release());
        auto group = waiting.get(env.io());
        BOOST_TEST(env.script->count(operation::hand_over) == 1U);
        waiting = env.start(env.locker->acquire_all({"a", "b"}));
        env.ready();
        env.run(group.release());
        env.run(waiting.get(env.io()).release());
        BOOST_TEST(env.script->count(operation::hand_over) >= 2U);
        env.wind_down_and_check();
    }
}

BOOST_AUTO_TEST_CASE(a_group_keeps_to_the_delays_of_its_policy)
{
    for (const bool fifo : {true, false}) {
        virtual_fixture env(backend_kind::scripted);
        disable_create_all(env, fifo);
        slow_down(*env.script, 5ms);
        colock::locker other_locker(env.memory);
        const auto busy = env.run(other_locker.acquire("b", {.ttl = 1h}));
        std::vector<std::size_t> attempt_numbers;
        const auto policy = retry_policy::custom([&](const retry_attempt& attempt) -> retry_decision {
            attempt_numbers.push_back(attempt.number);
            if (attempt.number == 4)
                return retry_stop;
            return 1min;
        });
        auto waiting = env.start(env.locker->acquire_all({"a", "b", "c"}, {.retry = policy}));
        while (attempt_numbers.size() < 4)
            env.advance(1s);
        // One attempt at once, and one after each minute.
        expect(keys_of(*env.script, {operation::create}), {"a", "b", "b", "b", "b"});
        while (!waiting.done())
            env.advance(1s);
        const auto failed = required_error<retry_error>([&] { static_cast<void>(waiting.get(env.io())); });
        BOOST_TEST((failed.code() == errc::retry_exhausted));
        BOOST_TEST(failed.attempts() == 5U);
        BOOST_TEST(failed.key() == "b");
        BOOST_TEST((failed.elapsed() >= 4min));
        BOOST_TEST(attempt_numbers.size() == 5U);
        // The release in the background takes time.
        env.advance(1s);
        BOOST_TEST(env.stored().size() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(group_that_gives_up_reports_the_reason)
{
    // The key is always busy. The time may end while a later attempt is unanswered.
    for (const auto total : {100000ms, 100200ms, 100400ms, 100900ms}) {
        virtual_fixture env(backend_kind::scripted);
        disable_create_all(env);
        slow_down(*env.script, 500ms);
        colock::locker other_locker(env.memory);
        const auto busy = env.run(other_locker.acquire("b", {.ttl = 1h}));
        auto waiting = env.start(
            env.locker->acquire_all({"a", "b"}, {.retry = retry_policy::fixed(25s).jitter(0.0).total_time(total)}));
        env.advance_by_steps(110s, 100ms);
        BOOST_TEST_REQUIRE(waiting.done());
        COLOCK_THROWS(retry_error, errc::retry_exhausted, waiting.get(env.io()));
        env.wind_down();
    }
    // The last attempt ended with an error.
    virtual_fixture env(backend_kind::scripted);
    disable_create_all(env);
    env.script->next(operation::create, step::pass());
    env.script->next(operation::create, step::busy());
    env.script->next(operation::create, step::fail(errc::unavailable, "out for lunch"));
    auto waiting = env.start(env.locker->acquire_all({"a", "b"}, {.retry = retry_policy::fixed(1s).times(1)}));
    env.advance_by_steps(5s, 100ms);
    BOOST_TEST_REQUIRE(waiting.done());
    const auto failed = required_error<create_error>([&] { static_cast<void>(waiting.get(env.io())); });
    BOOST_TEST((failed.code() == errc::unavailable));
    BOOST_TEST(failed.detail() == "out for lunch");
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(no_group_is_returned_after_one_of_its_leases_ended)
{
    const acquire_options options{.ttl = 1s, .retry = retry_policy::fixed(300ms).jitter(0.0).times(2)};
    virtual_fixture env(backend_kind::scripted);
    disable_create_all(env);
    env.script->always(operation::extend, step::fail(errc::unavailable));
    // The first lease ends once: the group starts again.
    end_first_lease(*env.script);
    auto waiting = env.start(env.locker->acquire_all({"a", "b"}, options));
    env.ready();
    BOOST_TEST(!waiting.done());
    env.advance(300ms);
    auto group = waiting.get(env.io());
    BOOST_TEST(group.held());
    BOOST_TEST(env.script->count(operation::create) == 4U);
    env.run(group.release());
    // The first lease ends each time: the group reports it.
    for (int i = 0; i < 3; ++i)
        end_first_lease(*env.script);
    waiting = env.start(env.locker->acquire_all({"a", "b"}, options));
    env.advance_by_steps(2s, 100ms);
    BOOST_TEST_REQUIRE(waiting.done());
    COLOCK_THROWS(create_error, errc::unavailable, waiting.get(env.io()));
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_SUITE_END()
