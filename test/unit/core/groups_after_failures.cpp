// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "groups.hpp"
#include "support/undoing_adapter.hpp"

#include <colock/detail/generation.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace colock::testing {

BOOST_AUTO_TEST_SUITE(groups_after_failures)

namespace {

bool has(const virtual_fixture& env, std::string_view key)
{
    return std::ranges::any_of(env.stored(), [&](const lock_status& each) { return each.key == key; });
}

} // namespace

BOOST_AUTO_TEST_CASE(later_waiter_does_not_block_a_group_whose_grant_was_not_answered)
{
    for (const bool fifo : {true, false}) {
        for (const auto ttl : {0ms, 30'000ms}) {
            virtual_fixture env(backend_kind::scripted);
            set_capabilities(env, fifo, true);
            env.script->next(operation::create_all, step::lose_reply());
            auto group =
                env.start(env.locker->acquire_all({"a", "b"}, {.ttl = ttl, .retry = retry_policy::fixed(100ms)}));
            env.ready();
            BOOST_TEST(env.stored().size() == 2U);
            auto single = env.start(env.locker->acquire("b", {.ttl = ttl}));
            auto waited = 0s;
            for (; waited < 3600s && !(group.done() || single.done()); waited += 1s)
                env.advance_by_steps(1s, 100ms);
            BOOST_TEST((waited <= 5s), "fifo " << fifo << ", ttl " << ttl.count() << " ms: no lock was granted for "
                                               << waited.count() << " s");
        }
    }
}

BOOST_AUTO_TEST_CASE(spent_claims_of_a_group_are_settled_at_once)
{
    virtual_fixture env(backend_kind::scripted);
    const auto undoing = std::make_shared<undoing_adapter>(env.script);
    colock::locker one(undoing);
    colock::locker two(env.memory);
    const acquire_options forever{.ttl = 0ms, .retry = retry_policy::fixed(1s)};
    auto first = env.start(one.acquire_all({"a", "b"}, forever));
    env.ready();
    auto second = env.start(two.acquire_all({"a", "b"}, forever));
    env.ready();
    for (int minutes = 0; minutes < 60 && !(first.done() || second.done()); ++minutes)
        env.advance_by_steps(1min, 1s);
    BOOST_TEST((first.done() || second.done()), "two callers of acquire_all are deadlocked for an hour");
}

BOOST_AUTO_TEST_CASE(error_that_delays_an_acquire_is_reported_to_later_callers)
{
    for (const bool group : {false, true}) {
        virtual_fixture env(backend_kind::scripted);
        env.script->always(
            group ? operation::create_all : operation::create, step::fail(errc::unavailable, "it is down"));
        const acquire_options patient{.retry = retry_policy::fixed(1min)};
        std::optional<running<lock>> single;
        std::optional<running<lock_group>> several;
        if (group)
            several = env.start(env.locker->acquire_all({"a", "b"}, patient));
        else
            single = env.start(env.locker->acquire("a", patient));
        env.ready();
        BOOST_TEST_CONTEXT("group " << group)
        {
            COLOCK_THROWS(create_error, errc::unavailable, env.run(env.locker->try_acquire("a")));
            const auto thrown = required_error<create_error>(
                [&] { static_cast<void>(env.run(env.locker->acquire("a", {.retry = retry_policy::never()}))); });
            BOOST_TEST(thrown.detail() == "it is down");
        }
        env.script->reset();
        env.advance_by_steps(2min, 1s);
    }
}

BOOST_AUTO_TEST_CASE(earlier_failure_is_not_reported_for_a_busy_key)
{
    for (const bool fails_first : {false, true}) {
        virtual_fixture env(backend_kind::scripted);
        if (fails_first)
            env.script->next(operation::create_all, step::fail(errc::unavailable, "it was down"));
        auto holder = env.acquire("b", {.ttl = 1h});
        auto group =
            env.start(env.locker->acquire_all({"a", "b"}, {.retry = retry_policy::fixed(1s).jitter(0).total_time(5s)}));
        env.ready();
        auto waiter = env.start(env.locker->acquire("b", {.ttl = 1h}));
        env.ready();
        env.advance_by_steps(6s, 100ms);
        BOOST_TEST_REQUIRE(group.done());
        BOOST_TEST_CONTEXT("fails first " << fails_first)
        {
            COLOCK_THROWS(retry_error, errc::retry_exhausted, group.get(env.io()));
        }
    }
}

BOOST_AUTO_TEST_CASE(attempt_after_an_unknown_outcome_is_not_counted_as_a_retry)
{
    for (const bool group : {false, true}) {
        virtual_fixture env(backend_kind::scripted);
        env.script->next(group ? operation::create_all : operation::create, step::lose_request());
        env.script->next(operation::create, step::fail(errc::unavailable, "it is down"));
        const acquire_options options{.retry = retry_policy::fixed(10min).jitter(0).times(1)};
        std::optional<running<lock>> single;
        std::optional<running<lock_group>> several;
        if (group)
            several = env.start(env.locker->acquire_all({"a", "b"}, options));
        else
            single = env.start(env.locker->acquire("a", options));
        env.advance_by_steps(2s, 50ms);
        const bool done = group ? several->done() : single->done();
        BOOST_TEST_CONTEXT("group " << group)
        {
            BOOST_TEST(!done, "the acquire ended after 2 s; its only retry is due after 10 min");
        }
    }
}

BOOST_AUTO_TEST_CASE(grant_neither_counts_nor_resets_the_schedule)
{
    virtual_fixture env(backend_kind::scripted);
    disable_create_all(env);
    colock::locker other_locker(env.memory);
    auto a = env.run(other_locker.acquire("a", {.ttl = 1h}));
    auto b = env.run(other_locker.acquire("b", {.ttl = 1h}));
    std::vector<std::size_t> attempt_numbers;
    const auto policy = retry_policy::custom([&](const retry_attempt& attempt) -> retry_decision {
        attempt_numbers.push_back(attempt.number);
        return 10s;
    });
    auto waiting = env.start(env.locker->acquire_all({"a", "b"}, {.retry = policy}));
    env.advance_by_steps(25s, 1s);
    BOOST_TEST(attempt_numbers.size() == 3U);
    env.run(a.release());
    env.ready();
    // b is requested at once, and counts when the schedule's delay is over.
    BOOST_TEST(attempt_numbers.size() == 3U);
    env.advance_by_steps(10s, 1s);
    BOOST_TEST(attempt_numbers == (std::vector<std::size_t>{0, 1, 2, 3}), boost::test_tools::per_element());
    env.run(b.release());
    env.run(waiting.get(env.io()).release());
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(total_time_ends_the_wait_for_a_renewal)
{
    virtual_fixture env(backend_kind::scripted);
    disable_create_all(env);
    colock::locker other_locker(env.memory);
    auto busy = env.run(other_locker.acquire("b", {.ttl = 1h}));
    env.script->always(operation::extend, step::hold());
    auto group = env.start(
        env.locker->acquire_all({"a", "b"}, {.ttl = 30s, .retry = retry_policy::fixed(1s).jitter(0).total_time(15s)}));
    env.advance_by_steps(12s, 100ms);
    env.run(busy.release());
    auto at = 12s;
    while (!group.done() && at < 60s) {
        env.advance_by_steps(1s, 100ms);
        at += 1s;
    }
    BOOST_TEST((at <= 16s), "a call with a total_time of 15 s ended after " << at / 1s << " s");
}

BOOST_AUTO_TEST_CASE(loss_ends_the_wait_for_another_renewal)
{
    virtual_fixture env(backend_kind::scripted);
    disable_create_all(env);
    for (const auto& each : {step::hold(), step::hold(), step::pass()})
        env.script->next(operation::extend, each);
    env.script->next(operation::create, step::pass());
    env.script->next(operation::create, step::pass());
    env.script->next(operation::create, step::pass().before([] { virtual_clock::skip(11s); }));
    auto group = env.start(env.locker->acquire_all({"a", "b", "c"}, {.ttl = 30s, .retry = retry_policy::fixed(1h)}));
    env.ready();
    BOOST_TEST(env.stored().size() == 3U);
    env.run(env.locker->break_lock("b"));
    env.ready();
    env.advance(1s);
    BOOST_TEST(!has(env, "c"), "c is still held 1 s after b was lost");
    env.advance(10s);
    BOOST_TEST(!has(env, "c"), "c is still held 11 s after b was lost");
}

BOOST_AUTO_TEST_CASE(minimum_validity_holds_for_a_group)
{
    virtual_fixture env(backend_kind::scripted);
    disable_create_all(env, true, {.minimum_validity = 25s});
    colock::locker other_locker(env.memory);
    auto busy = env.run(other_locker.acquire("b", {.ttl = 1h}));
    auto waiting = env.start(env.locker->acquire_all({"a", "b"}, {.ttl = 30s}));
    env.advance_by_steps(9s, 100ms);
    env.run(busy.release());
    auto group = waiting.get(env.io());
    for (const auto& each : group.locks())
        BOOST_TEST((each.expires_at() - lease_clock::now() >= 25s),
            each.key() << " has " << (each.expires_at() - lease_clock::now()) / 1ms << " ms left");
}

BOOST_AUTO_TEST_CASE(every_short_lease_is_renewed_before_completion)
{
    virtual_fixture env(backend_kind::scripted);
    disable_create_all(env);
    colock::locker other_locker(env.memory);
    auto b = env.run(other_locker.acquire("b", {.ttl = 1h}));
    auto c = env.run(other_locker.acquire("c", {.ttl = 1h}));
    env.script->always(operation::extend, step::fail(errc::unavailable));
    auto waiting = env.start(env.locker->acquire_all({"a", "b", "c"}, {.ttl = 30s}));
    env.advance_by_steps(5s, 100ms);
    env.run(b.release());
    env.advance_by_steps(7s, 100ms);
    env.run(c.release());
    env.advance_by_steps(13s, 50ms);
    BOOST_TEST(!waiting.done());
    env.script->reset();
    // A renewal that failed is repeated after a second.
    for (int i = 0; i < 200 && !waiting.done(); ++i)
        env.advance(10ms);
    BOOST_TEST_REQUIRE(waiting.done());
    auto group = waiting.get(env.io());
    for (const auto& each : group.locks())
        BOOST_TEST((each.expires_at() - lease_clock::now() >= 19s),
            each.key() << " has " << (each.expires_at() - lease_clock::now()) / 1ms << " ms left of 30 s");
}

BOOST_AUTO_TEST_CASE(attempts_after_a_loss_are_retries)
{
    virtual_fixture env(backend_kind::scripted);
    disable_create_all(env);
    colock::locker other_locker(env.memory);
    auto busy = env.run(other_locker.acquire("b", {.ttl = 1h}));
    auto waiting =
        env.start(env.locker->acquire_all({"a", "b"}, {.ttl = 30s, .retry = retry_policy::fixed(5s).jitter(0)}));
    env.advance(1s);
    env.run(env.locker->break_lock("a"));
    env.run(busy.release());
    env.advance_by_steps(10s, 100ms);
    BOOST_TEST_REQUIRE(waiting.done());
    BOOST_TEST(env.locker->stats().retries > 0U);
    auto group = waiting.get(env.io());
}

BOOST_AUTO_TEST_CASE(policy_that_ends_after_a_loss_reports_the_loss)
{
    virtual_fixture env(backend_kind::scripted);
    disable_create_all(env);
    colock::locker other_locker(env.memory);
    auto busy = env.run(other_locker.acquire("b", {.ttl = 1h}));
    auto waiting = env.start(
        env.locker->acquire_all({"a", "b"}, {.ttl = 30s, .retry = retry_policy::fixed(10s).jitter(0).total_time(5s)}));
    env.advance(1s);
    env.run(env.locker->break_lock("a"));
    env.advance_by_steps(10s, 100ms);
    BOOST_TEST_REQUIRE(waiting.done());
    const auto failed = required_error<create_error>([&] { static_cast<void>(waiting.get(env.io())); });
    BOOST_TEST((failed.code() == errc::unavailable));
    const std::string message = failed.what();
    BOOST_TEST(
        message.find("a lease ended before the last of several locks was granted") != std::string::npos, message);
    env.run(busy.release());
}

BOOST_AUTO_TEST_CASE(group_of_many_keys_lets_other_handlers_run)
{
    constexpr std::size_t count = 2'000;
    virtual_fixture env(backend_kind::memory);
    std::vector<group_member> keys;
    for (std::size_t i = 0; i < count; ++i)
        keys.emplace_back("k" + std::to_string(i));
    auto started = env.start(env.locker->acquire_all(group_members(std::move(keys))));
    std::size_t handlers = 0;
    while (!started.done())
        handlers += env.io().run_one();
    BOOST_TEST(handlers >= count / 64);
    static_cast<void>(started.get(env.io()));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
