// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"
#include "usual_options.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/this_coro.hpp>

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
    virtual_fixture on(backend_kind::scripted);
    auto held = on.acquire("k");
    struct row
    {
        operation fails;
        std::function<void()> run;
    };
    const auto once = acquire_options{.retry = retry_policy::never()};
    for (const auto& [fails, run] : std::vector<row>{
             {operation::create, [&] { static_cast<void>(on.acquire("o", once)); }},
             {operation::create, [&] { static_cast<void>(on.run(on.locker->try_acquire("o"))); }},
             {operation::extend, [&] { on.run(held.extend(40s)); }},
             {operation::is_valid, [&] { static_cast<void>(on.run(held.is_locked())); }},
             {operation::inspect, [&] { static_cast<void>(on.run(on.locker->is_locked("k"))); }},
             {operation::list, [&] { static_cast<void>(on.run(on.locker->list())); }},
             {operation::purge, [&] { static_cast<void>(on.run(on.locker->purge())); }},
             {operation::break_key, [&] { static_cast<void>(on.run(on.locker->break_lock("o"))); }},
             {operation::release, [&] { on.run(held.release(on_failure::raise)); }},
         })
    {
        BOOST_TEST_CONTEXT(to_string(fails))
        {
            on.script->next(fails, failing().before([&] { on.clock.skip(3s); }));
            const auto thrown = thrown_by<error>(run);
            BOOST_TEST_REQUIRE(thrown.has_value());
            BOOST_TEST((thrown->code() == errc::unavailable));
            BOOST_TEST((thrown->cause() == driver_code));
            BOOST_TEST(thrown->detail() == "the cable was cut");
            BOOST_TEST(thrown->attempts() == 1U);
            BOOST_TEST((thrown->elapsed() >= 3s));
        }
    }
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(failed_query_does_not_end_the_lock)
{
    virtual_fixture on(backend_kind::scripted);
    auto held = on.acquire("k");
    on.script->next(operation::is_valid, failing());
    COLOCK_THROWS(error, errc::unavailable, on.run(held.is_locked()));
    BOOST_TEST(held.held());
    BOOST_TEST(on.run(held.is_locked()));
}

BOOST_AUTO_TEST_CASE(holder_is_named_unless_the_last_answer_was_an_error)
{
    const auto twice = acquire_options{.retry = retry_policy::fixed(0s).jitter(0).times(1)};
    {
        virtual_fixture on(backend_kind::scripted);
        on.script->next(operation::create, failing());
        on.script->next(operation::create, step::busy({}, "bob"));
        const auto thrown = thrown_by<retry_error>([&] { static_cast<void>(on.acquire("k", twice)); });
        BOOST_TEST_REQUIRE(thrown.has_value());
        BOOST_TEST(thrown->detail() == "held by bob");
        BOOST_TEST(thrown->attempts() == 2U);
    }
    {
        virtual_fixture on(backend_kind::scripted);
        on.script->next(operation::create, step::busy({}, "bob"));
        on.script->next(operation::create, failing());
        const auto thrown = thrown_by<create_error>([&] { static_cast<void>(on.acquire("k", twice)); });
        BOOST_TEST_REQUIRE(thrown.has_value());
        BOOST_TEST(thrown->detail() == "the cable was cut");
    }
}

BOOST_AUTO_TEST_CASE(end_of_the_retry_policy_reports_the_holder_and_its_remaining_time)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture on(kind);
        const colock::locker other(on.backend(), {.owner = "cron"});
        const auto held = on.run(other.acquire("k", {.ttl = 20s}));
        const auto limited = acquire_options{.retry = retry_policy::fixed(1s).total_time(5s)};
        auto waiting = on.start(on.locker->acquire("k", limited));
        on.advance_by_steps(6s, 1s);
        const auto thrown = thrown_by<retry_error>([&] { static_cast<void>(waiting.get(on.io())); });
        BOOST_TEST_REQUIRE(thrown.has_value());
        BOOST_TEST(thrown->holder() == "cron");
        BOOST_TEST_REQUIRE(thrown->retry_after().has_value());
        BOOST_TEST((*thrown->retry_after() > 13s && *thrown->retry_after() <= 15s));
    }
}

BOOST_AUTO_TEST_CASE(holder_in_the_same_locker_is_named)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture on(kind);
        auto earlier = on.acquire("k", {.owner = "earlier"});
        auto second = on.start(on.locker->acquire("k", {.ttl = 20s, .owner = "me"}));
        auto third = on.start(on.locker->acquire("k"));
        on.ready();
        on.run(earlier.release());
        const auto held = second.get(on.io());
        auto first = on.start(on.locker->acquire("k", {.retry = retry_policy::fixed(1s).times(1)}));
        on.advance_by_steps(3s, 1s);
        const auto thrown = thrown_by<retry_error>([&] { static_cast<void>(first.get(on.io())); });
        BOOST_TEST_REQUIRE(thrown.has_value());
        BOOST_TEST(thrown->holder() == "me");
        BOOST_TEST_REQUIRE(thrown->retry_after().has_value());
        BOOST_TEST((*thrown->retry_after() > 10s && *thrown->retry_after() <= 20s));
        on.run(on.locker->shutdown());
        COLOCK_THROWS(create_error, errc::shutting_down, third.get(on.io()));
    }
}

BOOST_AUTO_TEST_CASE(unknown_holder_has_no_remaining_time)
{
    virtual_fixture on(backend_kind::scripted);
    on.script->next(operation::create, step::busy({}, {}));
    const auto thrown =
        thrown_by<retry_error>([&] { static_cast<void>(on.acquire("k", {.retry = retry_policy::never()})); });
    BOOST_TEST_REQUIRE(thrown.has_value());
    BOOST_TEST(thrown->holder().empty());
    BOOST_TEST(!thrown->retry_after().has_value());
}

BOOST_AUTO_TEST_CASE(shutdown_is_reported_as_the_end_of_a_body)
{
    virtual_fixture on(backend_kind::scripted);
    auto working = on.start(on.locker->with_lock("k", [] { return sleep_for(1h); }));
    on.ready();
    on.run(on.locker->shutdown(1min));
    const auto thrown = thrown_by<lost_error>([&] { working.get(on.io()); });
    BOOST_TEST_REQUIRE(thrown.has_value());
    BOOST_TEST(thrown->detail().find("shutting_down") != std::string::npos, thrown->detail());
    BOOST_TEST((thrown->reason() == lost_reason::shutting_down));
}

BOOST_AUTO_TEST_CASE(invalid_input_takes_no_time)
{
    virtual_fixture on;
    const auto thrown = thrown_by<validation_error>([&] { static_cast<void>(on.acquire("")); });
    BOOST_TEST_REQUIRE(thrown.has_value());
    BOOST_TEST(thrown->elapsed().count() == 0);
    BOOST_TEST(thrown->attempts() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(attempts)

BOOST_AUTO_TEST_CASE(bound_is_removed_by_a_later_answer)
{
    virtual_fixture on(backend_kind::scripted);
    on.script->always(operation::wait, step::hold());
    on.script->next(operation::create, step::busy(1s));
    on.script->always(operation::create, step::busy());
    auto waiting = on.start(on.locker->acquire("k", {.retry = rarely}));
    on.advance_by_steps(10s, 500ms);
    BOOST_TEST(on.script->count(operation::create) == 2U);
    BOOST_TEST(!waiting.done());
}

BOOST_AUTO_TEST_CASE(an_attempt_that_fails_counts_although_it_was_woken)
{
    for (const bool late : {false, true}) {
        virtual_fixture on(backend_kind::scripted);
        on.script->always(operation::wait, step::hold());
        on.script->next(operation::create, step::busy());
        on.script->next(operation::create, late ? step::pass().before([&] { on.clock.skip(29s); }) : failing());
        auto waiting = on.start(on.locker->acquire("k", {.ttl = 30s, .retry = retry_policy::fixed(24h).times(1)}));
        on.ready();
        BOOST_TEST_REQUIRE(on.script->deliver());
        on.ready();
        BOOST_TEST_REQUIRE(waiting.done());
        COLOCK_THROWS(create_error, errc::unavailable, waiting.get(on.io()));
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(after_an_error_only_time_helps)
{
    virtual_fixture on(backend_kind::scripted);
    auto held = on.acquire("k");
    on.script->next(operation::create, failing());
    auto waiting = on.start(on.locker->acquire("k", {.retry = retry_policy::fixed(10s).jitter(0)}));
    on.ready();
    BOOST_TEST(on.script->count(operation::wait) == 0U);
    held = {};
    on.advance(5s);
    BOOST_TEST(on.script->count(operation::create) == 2U);
    on.advance(6s);
    BOOST_TEST(waiting.done());
}

BOOST_AUTO_TEST_CASE(late_grant_is_released_before_the_next_attempt)
{
    virtual_fixture on(backend_kind::scripted);
    on.script->next(operation::create, step::pass().before([&] { on.clock.skip(29s); }));
    on.script->next(operation::release, step::hold());
    auto waiting = on.start(on.locker->acquire("k", {.ttl = 30s, .retry = retry_policy::fixed(1s).jitter(0)}));
    on.advance_by_steps(5s, 500ms);
    BOOST_TEST(on.script->count(operation::create) == 1U);
    on.script->deliver();
    on.ready();
    BOOST_TEST(waiting.get(on.io()).held());
    BOOST_TEST(on.script->count(operation::create) == 2U);
}

/// No event reports that the lock is free, and the policy's own attempt is due in a day.
BOOST_AUTO_TEST_CASE(late_grant_is_followed_by_attempts_with_growing_delays)
{
    virtual_fixture on(backend_kind::scripted);
    const auto late = step::pass().before([&] { on.clock.skip(29s); });
    for (int i = 0; i < 3; ++i)
        on.script->next(operation::create, late);
    auto waiting =
        on.start(on.locker->acquire("k", {.ttl = 30s, .retry = retry_policy::fixed(24h).jitter(0).times(1)}));
    std::size_t asked = 1;
    for (const auto pause : {1s, 2s, 4s}) {
        on.ready();
        BOOST_TEST(on.script->count(operation::create) == asked);
        BOOST_TEST(on.script->count(operation::release) == asked);
        on.advance(pause - 100ms);
        BOOST_TEST(on.script->count(operation::create) == asked);
        on.advance(200ms);
        BOOST_TEST(on.script->count(operation::create) == ++asked);
    }
    BOOST_TEST(waiting.get(on.io()).held());
}

BOOST_AUTO_TEST_CASE(several_late_grants_are_requested_again_soon)
{
    virtual_fixture on(backend_kind::scripted);
    on.script->next(operation::create_all, step::pass().before([&] { on.clock.skip(29s); }));
    auto waiting = on.start(on.locker->acquire_all({"a", "b"}, {.ttl = 30s, .retry = rarely}));
    on.ready();
    BOOST_TEST(on.script->count(operation::create_all) == 1U);
    on.advance(900ms);
    BOOST_TEST(on.script->count(operation::create_all) == 1U);
    on.advance(200ms);
    BOOST_TEST_REQUIRE(waiting.done());
    BOOST_TEST(waiting.get(on.io()).size() == 2U);
}

BOOST_AUTO_TEST_CASE(busy_single_attempt_leaves_nothing_to_release)
{
    virtual_fixture on(backend_kind::scripted);
    auto held = on.acquire("k");
    BOOST_TEST(!on.run(on.locker->try_acquire("k")).has_value());
    on.ready();
    BOOST_TEST(on.script->count(operation::abandon) == 0U);
    BOOST_TEST(on.script->count(operation::release) == 0U);
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
        virtual_fixture on(backend_kind::scripted);
        colock::locker other_locker(on.memory);
        lock other;
        if (busy)
            other = on.run(other_locker.acquire("k"));
        asio::cancellation_signal cancel;
        on.script->next(operation::create, step::hold());
        on.locker->async_acquire("k", asio::bind_cancellation_slot(cancel.slot(), [](error_code, lock) {}));
        on.ready();
        cancel.emit(asio::cancellation_type::terminal);
        on.ready();
        on.script->deliver();
        on.ready();
        BOOST_TEST(on.script->count(operation::release) == releases);
        BOOST_TEST(on.script->count(operation::abandon) == abandons);
    }
}

BOOST_AUTO_TEST_CASE(no_attempt_is_made_after_a_shutdown)
{
    for (const auto kind : {backend_kind::immediate, backend_kind::scripted}) {
        virtual_fixture on(kind);
        on.run(on.locker->shutdown());
        COLOCK_THROWS(create_error, errc::shutting_down, on.run(on.locker->try_acquire("k")));
        COLOCK_THROWS(create_error, errc::shutting_down, on.acquire("k"));
        BOOST_TEST(on.script->count(operation::create) == 0U);
    }
}

BOOST_AUTO_TEST_CASE(every_operation_carries_the_time_when_it_was_started)
{
    for (const auto kind : {backend_kind::immediate, backend_kind::scripted}) {
        virtual_fixture on(kind);
        auto now = lease_clock::now();
        const auto later = [&] {
            on.clock.skip(1s);
            now = lease_clock::now();
            on.script->forget_calls();
        };
        const auto check = [&](operation what) {
            on.ready();
            const auto calls = on.script->calls();
            BOOST_TEST_REQUIRE(calls.size() == 1U);
            BOOST_TEST((calls[0].what == what));
            BOOST_TEST((calls[0].sent >= now));
            BOOST_TEST((calls[0].sent <= lease_clock::now()));
        };
        later();
        auto held = on.acquire("k");
        check(operation::create);
        later();
        on.run(held.extend(50s));
        check(operation::extend);
        later();
        static_cast<void>(on.run(held.is_locked()));
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
        on.script->next(operation::create, step::pass().after([&] { on.clock.skip(29s); }));
        on.script->next(operation::release, step::pass().before(later));
        COLOCK_THROWS(create_error, errc::unavailable, on.acquire("k", {.ttl = 30s, .retry = retry_policy::never()}));
        on.ready();
        const auto calls = on.script->calls();
        for (const auto& made : calls)
            BOOST_TEST((lease_clock::now() - made.sent < 20s));
    }
}

BOOST_AUTO_TEST_SUITE_END()
