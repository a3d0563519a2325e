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

bool has(const virtual_fixture& on, std::string_view key)
{
    return std::ranges::any_of(on.stored(), [&](const lock_status& each) { return each.key == key; });
}

} // namespace

BOOST_AUTO_TEST_CASE(later_waiter_does_not_keep_a_group_from_its_own_grant)
{
    for (const bool fifo : {true, false}) {
        for (const auto ttl : {0ms, 30'000ms}) {
            virtual_fixture on(backend_kind::scripted);
            set_capabilities(on, fifo, true);
            on.script->next(operation::create_all, step::lose_reply());
            auto group =
                on.start(on.locker->acquire_all({"a", "b"}, {.ttl = ttl, .retry = retry_policy::fixed(100ms)}));
            on.ready();
            BOOST_TEST(on.stored().size() == 2U);
            auto single = on.start(on.locker->acquire("b", {.ttl = ttl}));
            auto waited = 0s;
            for (; waited < 3600s && !(group.done() || single.done()); waited += 1s)
                on.advance_by_steps(1s, 100ms);
            BOOST_TEST((waited <= 5s),
                "fifo " << fifo << ", ttl " << ttl.count() << " ms: nobody got on for " << waited.count() << " s");
        }
    }
}

BOOST_AUTO_TEST_CASE(replaced_claims_of_higher_keys_are_settled_at_once)
{
    virtual_fixture on(backend_kind::scripted);
    const auto undoing = std::make_shared<undoing_adapter>(on.script);
    colock::locker one(undoing);
    colock::locker two(on.memory);
    const acquire_options forever{.ttl = 0ms, .retry = retry_policy::fixed(1s)};
    auto first = on.start(one.acquire_all({"a", "b"}, forever));
    on.ready();
    auto second = on.start(two.acquire_all({"a", "b"}, forever));
    on.ready();
    for (int minutes = 0; minutes < 60 && !(first.done() || second.done()); ++minutes)
        on.advance_by_steps(1min, 1s);
    BOOST_TEST((first.done() || second.done()), "two callers of acquire_all are deadlocked for an hour");
}

BOOST_AUTO_TEST_CASE(error_that_makes_a_group_wait_is_reported_to_those_behind_it)
{
    for (const bool group : {false, true}) {
        virtual_fixture on(backend_kind::scripted);
        on.script->always(
            group ? operation::create_all : operation::create, step::fail(errc::unavailable, "it is down"));
        const acquire_options patient{.retry = retry_policy::fixed(1min)};
        std::optional<running<lock>> single;
        std::optional<running<lock_group>> several;
        if (group)
            several = on.start(on.locker->acquire_all({"a", "b"}, patient));
        else
            single = on.start(on.locker->acquire("a", patient));
        on.ready();
        BOOST_TEST_CONTEXT("group " << group)
        {
            COLOCK_THROWS(create_error, errc::unavailable, on.run(on.locker->try_acquire("a")));
            const auto thrown = thrown_by<create_error>(
                [&] { static_cast<void>(on.run(on.locker->acquire("a", {.retry = retry_policy::never()}))); });
            BOOST_TEST_REQUIRE(thrown.has_value());
            BOOST_TEST(thrown->detail() == "it is down");
        }
        on.script->reset();
        on.advance_by_steps(2min, 1s);
    }
}

BOOST_AUTO_TEST_CASE(earlier_failure_is_not_reported_for_a_busy_key)
{
    for (const bool fails_first : {false, true}) {
        virtual_fixture on(backend_kind::scripted);
        if (fails_first)
            on.script->next(operation::create_all, step::fail(errc::unavailable, "it was down"));
        auto holder = on.acquire("b", {.ttl = 1h});
        auto group =
            on.start(on.locker->acquire_all({"a", "b"}, {.retry = retry_policy::fixed(1s).jitter(0).total_time(5s)}));
        on.ready();
        auto waiter = on.start(on.locker->acquire("b", {.ttl = 1h}));
        on.ready();
        on.advance_by_steps(6s, 100ms);
        BOOST_TEST_REQUIRE(group.done());
        BOOST_TEST_CONTEXT("fails first " << fails_first)
        {
            COLOCK_THROWS(retry_error, errc::retry_exhausted, group.get(on.io()));
        }
    }
}

BOOST_AUTO_TEST_CASE(attempt_after_an_unknown_outcome_does_not_count)
{
    for (const bool group : {false, true}) {
        virtual_fixture on(backend_kind::scripted);
        on.script->next(group ? operation::create_all : operation::create, step::lose_request());
        on.script->next(operation::create, step::fail(errc::unavailable, "it is down"));
        const acquire_options options{.retry = retry_policy::fixed(10min).jitter(0).times(1)};
        std::optional<running<lock>> single;
        std::optional<running<lock_group>> several;
        if (group)
            several = on.start(on.locker->acquire_all({"a", "b"}, options));
        else
            single = on.start(on.locker->acquire("a", options));
        on.advance_by_steps(2s, 50ms);
        const bool done = group ? several->done() : single->done();
        BOOST_TEST_CONTEXT("group " << group)
        {
            BOOST_TEST(!done, "the policy of 10 min ended after 2 s");
        }
    }
}

BOOST_AUTO_TEST_CASE(total_time_ends_the_wait_for_a_renewal)
{
    virtual_fixture on(backend_kind::scripted);
    take_one_by_one(on);
    colock::locker other_locker(on.memory);
    auto busy = on.run(other_locker.acquire("b", {.ttl = 1h}));
    on.script->always(operation::extend, step::hold());
    auto group = on.start(
        on.locker->acquire_all({"a", "b"}, {.ttl = 30s, .retry = retry_policy::fixed(1s).jitter(0).total_time(15s)}));
    on.advance_by_steps(12s, 100ms);
    on.run(busy.release());
    auto at = 12s;
    while (!group.done() && at < 60s) {
        on.advance_by_steps(1s, 100ms);
        at += 1s;
    }
    BOOST_TEST((at <= 16s), "a call with a total_time of 15 s ended after " << at / 1s << " s");
}

BOOST_AUTO_TEST_CASE(loss_ends_the_wait_for_another_renewal)
{
    virtual_fixture on(backend_kind::scripted);
    take_one_by_one(on);
    for (const auto& each : {step::hold(), step::hold(), step::pass()})
        on.script->next(operation::extend, each);
    on.script->next(operation::create, step::pass());
    on.script->next(operation::create, step::pass());
    on.script->next(operation::create, step::pass().before([] { virtual_clock::skip(11s); }));
    auto group = on.start(on.locker->acquire_all({"a", "b", "c"}, {.ttl = 30s, .retry = retry_policy::fixed(1h)}));
    on.ready();
    BOOST_TEST(on.stored().size() == 3U);
    on.run(on.locker->break_lock("b"));
    on.ready();
    on.advance(1s);
    BOOST_TEST(!has(on, "c"), "c is still held 1 s after b was lost");
    on.advance(10s);
    BOOST_TEST(!has(on, "c"), "c is still held 11 s after b was lost");
}

BOOST_AUTO_TEST_CASE(minimum_validity_holds_for_a_group)
{
    virtual_fixture on(backend_kind::scripted);
    take_one_by_one(on, true, {.minimum_validity = 25s});
    colock::locker other_locker(on.memory);
    auto busy = on.run(other_locker.acquire("b", {.ttl = 1h}));
    auto waiting = on.start(on.locker->acquire_all({"a", "b"}, {.ttl = 30s}));
    on.advance_by_steps(9s, 100ms);
    on.run(busy.release());
    auto group = waiting.get(on.io());
    for (const auto& each : group.locks())
        BOOST_TEST((each.expires_at() - lease_clock::now() >= 25s),
            each.key() << " has " << (each.expires_at() - lease_clock::now()) / 1ms << " ms left");
}

BOOST_AUTO_TEST_CASE(every_short_lease_is_renewed_before_completion)
{
    virtual_fixture on(backend_kind::scripted);
    take_one_by_one(on);
    colock::locker other_locker(on.memory);
    auto b = on.run(other_locker.acquire("b", {.ttl = 1h}));
    auto c = on.run(other_locker.acquire("c", {.ttl = 1h}));
    on.script->always(operation::extend, step::fail(errc::unavailable));
    auto waiting = on.start(on.locker->acquire_all({"a", "b", "c"}, {.ttl = 30s}));
    on.advance_by_steps(5s, 100ms);
    on.run(b.release());
    on.advance_by_steps(7s, 100ms);
    on.run(c.release());
    on.advance_by_steps(13s, 50ms);
    BOOST_TEST(!waiting.done());
    on.script->reset();
    // A renewal that failed is repeated after a second.
    for (int i = 0; i < 200 && !waiting.done(); ++i)
        on.advance(10ms);
    BOOST_TEST_REQUIRE(waiting.done());
    auto group = waiting.get(on.io());
    for (const auto& each : group.locks())
        BOOST_TEST((each.expires_at() - lease_clock::now() >= 19s),
            each.key() << " has " << (each.expires_at() - lease_clock::now()) / 1ms << " ms left of 30 s");
}

BOOST_AUTO_TEST_CASE(attempts_after_a_loss_are_retries)
{
    virtual_fixture on(backend_kind::scripted);
    take_one_by_one(on);
    colock::locker other_locker(on.memory);
    auto busy = on.run(other_locker.acquire("b", {.ttl = 1h}));
    auto waiting =
        on.start(on.locker->acquire_all({"a", "b"}, {.ttl = 30s, .retry = retry_policy::fixed(5s).jitter(0)}));
    on.advance(1s);
    on.run(on.locker->break_lock("a"));
    on.run(busy.release());
    on.advance_by_steps(10s, 100ms);
    BOOST_TEST_REQUIRE(waiting.done());
    BOOST_TEST(on.locker->stats().retries > 0U);
    auto group = waiting.get(on.io());
}

namespace {
void pretend_to_be_forked(asio::io_context& io)
{
    io.notify_fork(asio::execution_context::fork_prepare);
    colock::detail::generation.fetch_add(1);
    io.notify_fork(asio::execution_context::fork_child);
}
} // namespace

BOOST_AUTO_TEST_CASE(group_in_a_forked_child_fails_as_forked)
{
    for (const bool never : {false, true}) {
        virtual_fixture on(backend_kind::scripted);
        take_one_by_one(on);
        on.script->always(operation::extend, step::hold());
        on.script->next(operation::create, step::pass());
        on.script->next(operation::create, step::pass().before([] { virtual_clock::skip(11s); }));
        auto group = on.start(on.locker->acquire_all(
            {"a", "b"}, {.ttl = 30s, .retry = never ? retry_policy::never() : retry_policy::forever()}));
        on.ready();
        BOOST_TEST(!group.done());
        pretend_to_be_forked(on.io());
        on.ready();
        BOOST_TEST_CONTEXT("never " << never)
        {
            COLOCK_THROWS(create_error, errc::forked, group.get(on.io()));
        }
        BOOST_TEST(on.locker->stats().held == 0U);
        BOOST_TEST(on.locker->stats().waiting == 0U);
        BOOST_TEST(on.locker->stats().settling == 0U);
    }
}

BOOST_AUTO_TEST_CASE(group_of_many_keys_lets_other_handlers_run)
{
    constexpr std::size_t count = 2'000;
    virtual_fixture on(backend_kind::memory);
    std::vector<group_member> keys;
    for (std::size_t i = 0; i < count; ++i)
        keys.emplace_back("k" + std::to_string(i));
    auto started = on.start(on.locker->acquire_all(group_members(std::move(keys))));
    std::size_t handlers = 0;
    while (!started.done())
        handlers += on.io().run_one();
    BOOST_TEST(handlers >= count / 64);
    static_cast<void>(started.get(on.io()));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
