// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Tests of groups on a backend that takes several locks in one step.
#include "groups.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(groups_at_once)

namespace {

strings attempts(const instrumented_adapter& script)
{
    return keys_of(script, {operation::create, operation::create_all});
}

} // namespace

BOOST_AUTO_TEST_CASE(a_group_is_taken_in_one_step)
{
    for (const auto kind : {backend_kind::scripted, backend_kind::immediate}) {
        virtual_fixture env(kind);
        auto group = env.run(env.locker->acquire_all({"c", "b", "a", "b"}));
        expect(attempts(*env.script), {"a,b,c"});
        BOOST_TEST(group.held());
        BOOST_TEST(group.locks()[0].key() == "a");
        BOOST_TEST(group.locks()[2].key() == "c");
        BOOST_TEST(group.locks()[1].fence() > 0U);
        BOOST_TEST(env.stored().size() == 3U);
        for (const auto& status : env.stored())
            BOOST_TEST(status.group == group.id());
        const auto stats = env.locker->stats();
        BOOST_TEST(stats.grants == 3U);
        BOOST_TEST(stats.attempts == 3U);
        BOOST_TEST(stats.waits == 0U);
        env.run(group.release());
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(one_key_shared_keys_and_more_than_64_keys_are_acquired_one_by_one)
{
    virtual_fixture env(backend_kind::scripted);
    env.run(env.run(env.locker->acquire_all({"a"})).release());
    env.run(env.run(env.locker->acquire_all({"a", "b"}, {.mode = lock_mode::shared})).release());
    strings many;
    for (int i = 0; i < 65; ++i)
        many.push_back("k" + std::to_string(i));
    env.run(env.run(env.locker->acquire_all(many)).release());
    BOOST_TEST(env.script->count(operation::create_all) == 0U);
    many.pop_back();
    env.run(env.run(env.locker->acquire_all(many)).release());
    BOOST_TEST(env.script->count(operation::create_all) == 1U);
    env.check_clean();
}

/// A cluster grants only locks of one slot in one step.
BOOST_AUTO_TEST_CASE(keys_that_the_backend_cannot_grant_together_are_acquired_one_by_one)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->next(operation::create_all, step::fail(errc::unsupported, "different servers"));
    auto group = env.run(env.locker->try_acquire_all({"b", "a"}));
    BOOST_TEST_REQUIRE(group.has_value());
    expect(attempts(*env.script), {"a,b", "a", "b"});
    const auto stats = env.locker->stats();
    BOOST_TEST(stats.attempts == 2U);
    BOOST_TEST(stats.retries == 0U);
    env.run(group->release());
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(refused_attempt_in_one_step_is_continued_one_by_one)
{
    for (const bool fifo : {true, false}) {
        for (const std::string busy_key : {"a", "b", "c"}) {
            virtual_fixture env(backend_kind::scripted);
            set_capabilities(env, fifo, true);
            colock::locker other_locker(env.memory);
            auto busy = env.run(other_locker.acquire(busy_key));
            auto waiting = env.start(env.locker->acquire_all({"c", "b", "a"}));
            env.ready();
            BOOST_TEST(!waiting.done());
            BOOST_TEST(env.locker->stats().waiting == 1U);
            strings lower;
            for (const std::string key : {"a", "b", "c"}) {
                lower.push_back(key);
                if (key == busy_key)
                    break;
            }
            // Keys below the busy one are held, and keys above it are free.
            BOOST_TEST(env.stored().size() == lower.size());
            lower.insert(lower.begin(), "a,b,c");
            expect(attempts(*env.script), lower);
            env.run(busy.release());
            env.ready();
            BOOST_TEST_REQUIRE(waiting.done());
            auto group = waiting.get(env.io());
            BOOST_TEST(group.held());
            BOOST_TEST(env.script->count(operation::create_all) == 1U);
            BOOST_TEST(env.script->count(operation::abandon) == 0U);
            env.run(group.release());
            env.wind_down_and_check();
        }
    }
}

BOOST_AUTO_TEST_CASE(waiters_of_the_same_locker_are_not_overtaken)
{
    for (const bool fifo : {true, false}) {
        virtual_fixture env(backend_kind::scripted);
        set_capabilities(env, fifo, true);
        auto busy = env.acquire("b");
        strings order;
        const auto take = [&](strings keys, std::string name) -> asio::awaitable<void> {
            if (keys.size() == 1) {
                const auto held = co_await env.locker->acquire(keys.front());
                order.push_back(name);
                co_await asio::post(asio::deferred);
            } else {
                const auto held = co_await env.locker->acquire_all(keys);
                order.push_back(name);
                co_await asio::post(asio::deferred);
            }
        };
        auto first = env.start(take({"b"}, "first"));
        env.ready();
        auto second = env.start(take({"a", "b"}, "second"));
        env.ready();
        // An attempt in one step would overtake the first waiter, so none is made.
        BOOST_TEST(env.script->count(operation::create_all) == 0U);
        auto third = env.start(take({"b"}, "third"));
        env.ready();
        env.run(busy.release());
        env.advance_by_steps(1s, 10ms);
        expect(order, {"first", "second", "third"});
        env.wind_down_and_check();
    }
}

BOOST_AUTO_TEST_CASE(later_waiter_is_behind_an_attempt_in_one_step)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->next(operation::create_all, step::hold());
    auto waiting = env.start(env.locker->acquire_all({"a", "b"}));
    env.ready();
    auto later = env.start(env.locker->acquire("b"));
    env.ready();
    expect(attempts(*env.script), {"a,b"});
    BOOST_TEST(env.script->deliver());
    auto group = waiting.get(env.io());
    BOOST_TEST(group.held());
    env.ready();
    BOOST_TEST(!later.done());
    env.run(group.release());
    env.run(later.get(env.io()).release());
    BOOST_TEST(env.script->count(operation::hand_over) == 1U);
    env.check_clean();
}

/// A grant whose reply was lost would block claims with new tokens: forever, if the lock has no TTL.
BOOST_AUTO_TEST_CASE(unknown_outcome_is_continued_one_by_one_with_the_same_tokens)
{
    for (const auto& lost : {step::lose_reply(), step::lose_request()}) {
        virtual_fixture env(backend_kind::scripted);
        env.script->next(operation::create_all, lost);
        auto waiting = env.start(
            env.locker->acquire_all({"a", "b", "c"}, {.ttl = 0ms, .retry = retry_policy::fixed(10min).times(1)}));
        env.ready();
        const auto before = env.stored();
        env.advance_by_steps(2s, 50ms);
        BOOST_TEST_REQUIRE(waiting.done());
        auto group = waiting.get(env.io());
        expect(attempts(*env.script), {"a,b,c", "a", "b", "c"});
        std::vector<colock::token> tokens;
        for (const auto& call : env.script->calls()) {
            if (call.what == operation::create)
                tokens.push_back(call.token);
        }
        for (std::size_t i = 0; i < tokens.size(); ++i)
            BOOST_TEST((tokens[i] == group.locks()[i].token()));
        // A lock that had been granted was found, with the same grant.
        for (const auto& each : before) {
            const auto same = std::ranges::find(group.locks(), each.key, &lock::key);
            BOOST_TEST(same->fence() == each.fence);
        }
        env.run(group.release());
        env.wind_down_and_check();
    }
}

BOOST_AUTO_TEST_CASE(single_attempt_policy_ends_with_the_first_refusal)
{
    virtual_fixture env(backend_kind::scripted);
    colock::locker other_locker(env.memory);
    auto busy = env.run(other_locker.acquire("b"));
    COLOCK_THROWS(retry_error, errc::retry_exhausted,
        env.run(env.locker->acquire_all({"a", "b"}, {.retry = retry_policy::never()})));
    expect(attempts(*env.script), {"a,b"});
    BOOST_TEST(env.stored().size() == 1U);
    busy = {};
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(attempt_in_one_step_and_first_attempt_one_by_one_count_once)
{
    for (const std::string busy_key : {"a", "b"}) {
        virtual_fixture env(backend_kind::scripted);
        colock::locker other_locker(env.memory);
        auto busy = env.run(other_locker.acquire(busy_key, {.ttl = 1h}));
        std::vector<std::size_t> attempt_numbers;
        const auto policy = retry_policy::custom([&](const retry_attempt& attempt) -> retry_decision {
            attempt_numbers.push_back(attempt.number);
            return 1min;
        });
        auto waiting = env.start(env.locker->acquire_all({"a", "b"}, {.retry = policy}));
        env.advance_by_steps(10s, 1s);
        BOOST_TEST(attempt_numbers == std::vector<std::size_t>{0}, boost::test_tools::per_element());
        env.advance_by_steps(1min, 1s);
        BOOST_TEST(attempt_numbers == (std::vector<std::size_t>{0, 1}), boost::test_tools::per_element());
        busy = {};
        env.run(waiting.get(env.io()).release());
        env.wind_down_and_check();
    }
}

BOOST_AUTO_TEST_CASE(no_group_is_returned_after_one_of_its_leases_ended)
{
    const acquire_options options{.ttl = 1s, .retry = retry_policy::fixed(300ms).jitter(0.0).times(2)};
    virtual_fixture env(backend_kind::scripted);
    const auto late = step::pass().after([] { virtual_clock::skip(1200ms); });
    env.script->next(operation::create_all, late);
    auto waiting = env.start(env.locker->acquire_all({"a", "b"}, options));
    env.ready();
    BOOST_TEST(!waiting.done());
    env.advance_by_steps(1s, 100ms);
    BOOST_TEST_REQUIRE(waiting.done());
    auto group = waiting.get(env.io());
    BOOST_TEST(group.held());
    env.run(group.release());
    env.wind_down_and_check();
    // Every grant is late, so the acquire fails.
    for (int i = 0; i < 3; ++i)
        env.script->next(operation::create_all, late);
    waiting = env.start(env.locker->acquire_all({"a", "b"}, options));
    env.advance_by_steps(5s, 100ms);
    BOOST_TEST_REQUIRE(waiting.done());
    COLOCK_THROWS(create_error, errc::unavailable, waiting.get(env.io()));
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(permanent_error_is_thrown_at_once)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->next(operation::create_all, step::fail(errc::access_denied, "not you"));
    const auto denied =
        required_error<create_error>([&] { static_cast<void>(env.run(env.locker->acquire_all({"a", "b"}))); });
    BOOST_TEST((denied.code() == errc::access_denied));
    BOOST_TEST(denied.detail() == "not you");
    env.script->next(operation::create_all, step::busy(1s, "somebody"));
    const auto busy = required_error<retry_error>(
        [&] { static_cast<void>(env.run(env.locker->acquire_all({"a", "b"}, {.retry = retry_policy::never()}))); });
    BOOST_TEST((busy.code() == errc::retry_exhausted));
    BOOST_TEST(busy.key() == "a");
    BOOST_TEST(busy.attempts() == 1U);
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(groups_that_are_granted_at_once_let_others_run)
{
    virtual_fixture env(backend_kind::memory);
    bool stop = false;
    const auto forever = [&]() -> asio::awaitable<void> {
        while (!stop) {
            auto group = co_await env.locker->acquire_all({"a", "b", "c"});
            co_await group.release();
        }
    };
    auto busy = env.start(forever());
    asio::post(env.io(), [&] { stop = true; });
    busy.get(env.io());
    env.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
