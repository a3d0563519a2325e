// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/set_capabilities.hpp"
#include "support/virtual_fixture.hpp"
#include "usual_options.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <functional>
#include <string>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

const error_code driver_code = make_error_code(boost::system::errc::connection_refused);

step failing()
{
    return step::fail(errc::unavailable, "the cable was cut", driver_code);
}

} // namespace

BOOST_AUTO_TEST_SUITE(errors)

BOOST_AUTO_TEST_CASE(every_operation_reports_the_error_of_the_backend)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("k");
    struct row
    {
        operation fails;
        std::function<void()> run;
    };
    const auto single_attempt = acquire_options{.retry = retry_policy::never()};
    for (const auto& [fails, run] : std::vector<row>{
             {operation::create, [&] { static_cast<void>(env.acquire("o", single_attempt)); }},
             {operation::create, [&] { static_cast<void>(env.run(env.locker->try_acquire("o"))); }},
             {operation::extend, [&] { env.run(held.extend(40s)); }},
             {operation::is_valid, [&] { static_cast<void>(env.run(held.is_locked())); }},
             {operation::inspect, [&] { static_cast<void>(env.run(env.locker->is_locked("k"))); }},
             {operation::list, [&] { static_cast<void>(env.run(env.locker->list())); }},
             {operation::purge, [&] { static_cast<void>(env.run(env.locker->purge())); }},
             {operation::break_key, [&] { static_cast<void>(env.run(env.locker->break_lock("o"))); }},
             {operation::release, [&] { env.run(held.release(on_failure::raise)); }},
         })
    {
        BOOST_TEST_CONTEXT(to_string(fails))
        {
            env.script->next(fails, failing().before([&] { env.clock.skip(3s); }));
            const auto thrown = required_error<error>(run);
            BOOST_TEST((thrown.code() == errc::unavailable));
            BOOST_TEST((thrown.cause() == driver_code));
            BOOST_TEST(thrown.detail() == "the cable was cut");
            BOOST_TEST(thrown.attempts() == 1U);
            BOOST_TEST((thrown.elapsed() >= 3s));
        }
    }
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(holder_is_named_unless_the_last_answer_was_an_error)
{
    const auto twice = acquire_options{.retry = retry_policy::fixed(0s).jitter(0).times(1)};
    {
        virtual_fixture env(backend_kind::scripted);
        env.script->next(operation::create, failing());
        env.script->next(operation::create, step::busy({}, "bob"));
        const auto thrown = required_error<retry_error>([&] { static_cast<void>(env.acquire("k", twice)); });
        BOOST_TEST(thrown.detail() == "held by bob");
        BOOST_TEST(thrown.attempts() == 2U);
    }
    {
        virtual_fixture env(backend_kind::scripted);
        env.script->next(operation::create, step::busy({}, "bob"));
        env.script->next(operation::create, failing());
        const auto thrown = required_error<create_error>([&] { static_cast<void>(env.acquire("k", twice)); });
        BOOST_TEST(thrown.detail() == "the cable was cut");
    }
}

BOOST_AUTO_TEST_CASE(end_of_the_retry_policy_reports_the_holder_and_its_remaining_time)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        const colock::locker other(env.backend(), {.owner = "cron", .host = "far"});
        const auto held = env.run(other.acquire("k", {.ttl = 20s}));
        const auto limited = acquire_options{.retry = retry_policy::fixed(1s).total_time(5s)};
        auto waiting = env.start(env.locker->acquire("k", limited));
        env.advance_by_steps(6s, 1s);
        const auto thrown = required_error<retry_error>([&] { static_cast<void>(waiting.get(env.io())); });
        BOOST_TEST(thrown.holder() == "cron");
        BOOST_TEST(thrown.detail() == "held by cron on far");
        BOOST_TEST_REQUIRE(thrown.retry_after().has_value());
        BOOST_TEST((thrown.retry_after() > 13s && thrown.retry_after() <= 15s));
    }
}

/// ZooKeeper names no holder.
BOOST_AUTO_TEST_CASE(holder_in_the_same_locker_is_named_if_the_backend_names_none)
{
    virtual_fixture env(backend_kind::scripted);
    set_capabilities(env, true, false);
    auto earlier = env.acquire("k");
    auto second = env.start(env.locker->acquire("k", {.ttl = 20s, .owner = "me"}));
    auto third = env.start(env.locker->acquire("k", {.retry = within(4s)}));
    env.ready();
    env.run(earlier.release());
    const auto held = second.get(env.io());
    env.script->always(operation::create, step::busy());
    env.script->always(operation::wait, step::hold());
    env.advance_by_steps(5s, 1s);
    const auto thrown = required_error<retry_error>([&] { static_cast<void>(third.get(env.io())); });
    BOOST_TEST(thrown.holder() == "me");
    BOOST_TEST(thrown.detail().ends_with("(this process)"), thrown.detail());
    BOOST_TEST_REQUIRE(thrown.retry_after().has_value());
    BOOST_TEST((thrown.retry_after() > 10s && thrown.retry_after() <= 20s));
}

BOOST_AUTO_TEST_CASE(holder_in_the_same_locker_is_named)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        auto earlier = env.acquire("k", {.owner = "earlier"});
        auto second = env.start(env.locker->acquire("k", {.ttl = 20s, .owner = "me"}));
        auto third = env.start(env.locker->acquire("k"));
        env.ready();
        env.run(earlier.release());
        const auto held = second.get(env.io());
        auto first = env.start(env.locker->acquire("k", {.retry = retry_policy::fixed(1s).times(1)}));
        env.advance_by_steps(3s, 1s);
        const auto thrown = required_error<retry_error>([&] { static_cast<void>(first.get(env.io())); });
        BOOST_TEST(thrown.holder() == "me");
        BOOST_TEST_REQUIRE(thrown.retry_after().has_value());
        BOOST_TEST((thrown.retry_after() > 10s && thrown.retry_after() <= 20s));
        env.run(env.locker->shutdown());
        COLOCK_THROWS(create_error, errc::shutting_down, third.get(env.io()));
    }
}

BOOST_AUTO_TEST_CASE(holder_is_named_to_a_caller_behind_another_one)
{
    struct row
    {
        const char* name;
        acquire_options of_holder;
        acquire_options of_waiters;
        bool is_here;
    };
    for (const auto kind : {backend_kind::memory, backend_kind::immediate, backend_kind::scripted}) {
        for (const auto& each : {row{"exclusive, this locker", {}, {}, true},
                 row{"exclusive, another one", {}, {}, false}, row{"shared", {.mode = lock_mode::shared}, {}, true},
                 row{"shared waiters", {}, {.mode = lock_mode::shared}, true},
                 row{"semaphore", {.mode = lock_mode::shared, .max_holders = 1},
                     {.mode = lock_mode::shared, .max_holders = 1}, true}})
        {
            for (const auto& policy : {within(5s), retry_policy::fixed(1s).jitter(0).times(4)}) {
                BOOST_TEST_CONTEXT(
                    kind << ", " << each.name << ", limited by " << (policy.max_time() ? "time" : "number"))
                {
                    virtual_fixture env(kind);
                    const colock::locker another(env.backend());
                    auto options = each.of_holder;
                    options.ttl = 20s;
                    options.owner = "cron";
                    options.host = "far";
                    const auto held = env.run((each.is_here ? *env.locker : another).acquire("k", options));
                    options = each.of_waiters;
                    auto first = env.start(env.locker->acquire("k", options));
                    env.ready();
                    options.retry = policy;
                    auto second = env.start(env.locker->acquire("k", options));
                    env.advance_by_steps(6s, 1s);
                    const auto thrown = required_error<retry_error>([&] { static_cast<void>(second.get(env.io())); });
                    BOOST_TEST(thrown.holder() == "cron");
                    BOOST_TEST(thrown.detail() == "held by cron on far");
                    BOOST_TEST_REQUIRE(thrown.retry_after().has_value());
                    BOOST_TEST((thrown.retry_after() > 13s && thrown.retry_after() <= 16s));
                    env.run(env.locker->shutdown());
                    COLOCK_THROWS(create_error, errc::shutting_down, first.get(env.io()));
                }
            }
        }
    }
}

/// ZooKeeper names no holder.
BOOST_AUTO_TEST_CASE(caller_behind_another_one_is_named_no_holder_if_the_backend_names_none)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->always(operation::create, step::busy());
    env.script->always(operation::wait, step::hold());
    auto first = env.start(env.locker->acquire("k"));
    env.ready();
    const auto check = [&](auto waiting) {
        env.advance(6s);
        const auto thrown = required_error<retry_error>([&] { static_cast<void>(waiting.get(env.io())); });
        BOOST_TEST(thrown.detail() == "another caller of this locker is first");
        BOOST_TEST(thrown.holder().empty());
        BOOST_TEST(!thrown.retry_after().has_value());
    };
    check(env.start(env.locker->acquire("k", {.retry = within(5s)})));
    check(env.start(env.locker->acquire_all({"k", "z"}, {.retry = within(5s)})));
    env.run(env.locker->shutdown());
    COLOCK_THROWS(create_error, errc::shutting_down, first.get(env.io()));
}

BOOST_AUTO_TEST_CASE(holder_is_named_to_a_group_behind_another_caller)
{
    virtual_fixture env(backend_kind::scripted);
    const auto held = env.acquire("k", {.owner = "cron"});
    auto first = env.start(env.locker->acquire("k"));
    env.ready();
    auto group = env.start(env.locker->acquire_all({"a", "k"}, {.retry = within(5s)}));
    env.advance_by_steps(6s, 1s);
    const auto thrown = required_error<retry_error>([&] { static_cast<void>(group.get(env.io())); });
    BOOST_TEST(thrown.key() == "k");
    BOOST_TEST(thrown.holder() == "cron");
    env.run(env.locker->shutdown());
    COLOCK_THROWS(create_error, errc::shutting_down, first.get(env.io()));
}

/// The group has the place of the first for "a", which was refused together with "b".
BOOST_AUTO_TEST_CASE(holder_of_another_key_is_not_named_to_a_caller_behind_a_group)
{
    for (const std::string busy_key : {"a", "b"}) {
        virtual_fixture env(backend_kind::scripted);
        const colock::locker other(env.backend(), {.owner = "cron"});
        const auto held = env.run(other.acquire(busy_key));
        env.script->always(operation::create, step::hold());
        auto group = env.start(env.locker->acquire_all({"a", "b"}));
        env.ready();
        BOOST_TEST(env.script->count(operation::create_all) == 1U);
        const auto thrown =
            required_error<retry_error>([&] { static_cast<void>(env.acquire("a", {.retry = retry_policy::never()})); });
        BOOST_TEST(thrown.holder() == (busy_key == "a" ? "cron" : ""));
        if (busy_key == "b")
            BOOST_TEST(thrown.detail() == "another caller of this locker is first");
        env.locker.reset();
        COLOCK_THROWS(create_error, errc::shutting_down, group.get(env.io()));
        while (env.script->discard())
            env.ready();
    }
}

BOOST_AUTO_TEST_CASE(unknown_holder_has_no_remaining_time)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->next(operation::create, step::busy({}, {}));
    const auto thrown =
        required_error<retry_error>([&] { static_cast<void>(env.acquire("k", {.retry = retry_policy::never()})); });
    BOOST_TEST(thrown.holder().empty());
    BOOST_TEST(!thrown.retry_after().has_value());
}

BOOST_AUTO_TEST_CASE(shutdown_is_reported_as_the_end_of_a_body)
{
    virtual_fixture env(backend_kind::scripted);
    auto working = env.start(env.locker->with_lock("k", [] { return sleep_for(1h); }));
    env.ready();
    env.run(env.locker->shutdown(1min));
    const auto thrown = required_error<lost_error>([&] { working.get(env.io()); });
    BOOST_TEST(thrown.detail().find("the locker was shut down") != std::string::npos, thrown.detail());
    BOOST_TEST(std::string(thrown.what()).find("late writes") == std::string::npos, thrown.what());
    BOOST_TEST((thrown.reason() == lost_reason::shutting_down));
}

BOOST_AUTO_TEST_CASE(operation_after_a_shutdown_asks_for_no_longer_ttl)
{
    virtual_fixture env;
    auto held = env.acquire("k");
    env.run(env.locker->shutdown(1min));
    const auto thrown = required_error<colock::error>([&] { static_cast<void>(env.run(held.detach())); });
    BOOST_TEST((thrown.code() == errc::not_held));
    BOOST_TEST(thrown.detail().find("the shutdown of the locker") != std::string::npos, thrown.detail());
    BOOST_TEST(std::string(thrown.what()).find("longer ttl") == std::string::npos, thrown.what());
}

BOOST_AUTO_TEST_CASE(invalid_input_takes_no_time)
{
    virtual_fixture env;
    const auto thrown = required_error<validation_error>([&] { static_cast<void>(env.acquire("")); });
    BOOST_TEST(thrown.elapsed().count() == 0);
    BOOST_TEST(thrown.attempts() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(attempts)

BOOST_AUTO_TEST_CASE(bound_is_removed_by_a_later_answer)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->always(operation::wait, step::hold());
    env.script->next(operation::create, step::busy(1s));
    env.script->always(operation::create, step::busy());
    auto waiting = env.start(env.locker->acquire("k", {.retry = rarely}));
    env.advance_by_steps(10s, 500ms);
    BOOST_TEST(env.script->count(operation::create) == 2U);
    BOOST_TEST(!waiting.done());
}

BOOST_AUTO_TEST_CASE(an_attempt_that_fails_counts_although_it_was_woken)
{
    for (const bool late : {false, true}) {
        virtual_fixture env(backend_kind::scripted);
        env.script->always(operation::wait, step::hold());
        env.script->next(operation::create, step::busy());
        env.script->next(operation::create, late ? step::pass().before([&] { env.clock.skip(29s); }) : failing());
        auto waiting = env.start(env.locker->acquire("k", {.ttl = 30s, .retry = retry_policy::fixed(24h).times(1)}));
        env.ready();
        BOOST_TEST_REQUIRE(env.script->deliver());
        env.ready();
        BOOST_TEST_REQUIRE(waiting.done());
        COLOCK_THROWS(create_error, errc::unavailable, waiting.get(env.io()));
        env.wind_down_and_check();
    }
}

/// No event reports that the lock is free, and the policy's own attempt is due in a day.
BOOST_AUTO_TEST_CASE(late_grant_is_followed_by_attempts_with_growing_delays)
{
    virtual_fixture env(backend_kind::scripted);
    const auto late = step::pass().before([&] { env.clock.skip(29s); });
    for (int i = 0; i < 3; ++i)
        env.script->next(operation::create, late);
    auto waiting =
        env.start(env.locker->acquire("k", {.ttl = 30s, .retry = retry_policy::fixed(24h).jitter(0).times(1)}));
    std::size_t asked = 1;
    for (const auto pause : {1s, 2s, 4s}) {
        env.ready();
        BOOST_TEST(env.script->count(operation::create) == asked);
        BOOST_TEST(env.script->count(operation::release) == asked);
        env.advance(pause - 100ms);
        BOOST_TEST(env.script->count(operation::create) == asked);
        env.advance(200ms);
        BOOST_TEST(env.script->count(operation::create) == ++asked);
    }
    BOOST_TEST(waiting.get(env.io()).held());
}

BOOST_AUTO_TEST_CASE(several_late_grants_are_requested_again_soon)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->next(operation::create_all, step::pass().before([&] { env.clock.skip(29s); }));
    auto waiting = env.start(env.locker->acquire_all({"a", "b"}, {.ttl = 30s, .retry = rarely}));
    env.ready();
    BOOST_TEST(env.script->count(operation::create_all) == 1U);
    env.advance(900ms);
    BOOST_TEST(env.script->count(operation::create_all) == 1U);
    env.advance(200ms);
    BOOST_TEST_REQUIRE(waiting.done());
    BOOST_TEST(waiting.get(env.io()).size() == 2U);
}

BOOST_AUTO_TEST_CASE(busy_single_attempt_leaves_nothing_to_release)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("k");
    BOOST_TEST(!env.run(env.locker->try_acquire("k")).has_value());
    env.ready();
    BOOST_TEST(env.script->count(operation::abandon) == 0U);
    BOOST_TEST(env.script->count(operation::release) == 0U);
}

BOOST_AUTO_TEST_CASE(claim_of_a_cancelled_acquire_is_released_or_abandoned)
{
    struct row
    {
        bool busy;
        std::size_t releases;
        std::size_t abandons;
    };
    for (const auto& [busy, releases, abandons] : {row{true, 0, 1}, row{false, 1, 0}}) {
        virtual_fixture env(backend_kind::scripted);
        colock::locker other_locker(env.memory);
        lock other;
        if (busy)
            other = env.run(other_locker.acquire("k"));
        asio::cancellation_signal cancel;
        env.script->next(operation::create, step::hold());
        env.locker->async_acquire("k", asio::bind_cancellation_slot(cancel.slot(), [](error_code, lock) {}));
        env.ready();
        cancel.emit(asio::cancellation_type::terminal);
        env.ready();
        env.script->deliver();
        env.ready();
        BOOST_TEST(env.script->count(operation::release) == releases);
        BOOST_TEST(env.script->count(operation::abandon) == abandons);
    }
}

BOOST_AUTO_TEST_CASE(every_operation_carries_the_time_when_it_was_started)
{
    for (const auto kind : {backend_kind::immediate, backend_kind::scripted}) {
        virtual_fixture env(kind);
        auto now = lease_clock::now();
        const auto later = [&] {
            env.clock.skip(1s);
            now = lease_clock::now();
            env.script->forget_calls();
        };
        const auto check = [&](operation what) {
            env.ready();
            const auto calls = env.script->calls();
            BOOST_TEST_REQUIRE(calls.size() == 1U);
            BOOST_TEST((calls[0].what == what));
            BOOST_TEST((calls[0].operation_start >= now));
            BOOST_TEST((calls[0].operation_start <= lease_clock::now()));
        };
        later();
        auto held = env.acquire("k");
        check(operation::create);
        later();
        env.run(held.extend(50s));
        check(operation::extend);
        later();
        static_cast<void>(env.run(held.is_locked()));
        check(operation::is_valid);
        if (kind == backend_kind::immediate) {
            // On this backend, a release may carry the time of an earlier operation.
            held = {};
            continue;
        }
        later();
        held = {};
        check(operation::release);

        // The release of a grant that arrived too late has a time of its own, too.
        env.script->next(operation::create, step::pass().after([&] { env.clock.skip(29s); }));
        env.script->next(operation::release, step::pass().before(later));
        COLOCK_THROWS(create_error, errc::unavailable, env.acquire("k", {.ttl = 30s, .retry = retry_policy::never()}));
        env.ready();
        const auto calls = env.script->calls();
        for (const auto& made : calls)
            BOOST_TEST((lease_clock::now() - made.operation_start < 20s));
    }
}

BOOST_AUTO_TEST_SUITE_END()
