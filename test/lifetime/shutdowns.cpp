// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "cancellable_acquire.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/this_coro.hpp>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(shutdowns)

BOOST_AUTO_TEST_CASE(everything_ends_and_the_report_is_clean)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture on(kind);
        auto held = on.acquire("held");
        auto busy = on.acquire("busy");
        auto lost = on.start(held.lost());
        auto waiting = on.start(on.locker->acquire("busy"));
        auto body = on.start(on.locker->with_lock("body", []() -> asio::awaitable<void> {
            lease_timer timer(co_await asio::this_coro::executor, 1h);
            co_await timer.async_wait(asio::deferred);
        }));
        on.ready();
        const auto report = on.run(on.locker->shutdown(1min));
        BOOST_TEST(report.clean());
        BOOST_TEST(report.unproven == 0U);
        BOOST_TEST(on.stored().empty());
        on.ready();
        COLOCK_THROWS(create_error, errc::shutting_down, waiting.get(on.io()));
        BOOST_TEST((lost.get(on.io()) == lost_reason::shutting_down));
        COLOCK_THROWS(lost_error, errc::lost, body.get(on.io()));
        BOOST_TEST(!held.held());
        COLOCK_THROWS(create_error, errc::shutting_down, on.run(on.locker->acquire("k")));
        COLOCK_THROWS(create_error, errc::shutting_down, on.run(on.locker->try_acquire("k")));
        COLOCK_THROWS(create_error, errc::shutting_down, on.run(on.locker->acquire_all({"a", "b"})));
        COLOCK_THROWS(create_error, errc::shutting_down, on.run(on.locker->with_lock("k", [] {})));
        COLOCK_THROWS(extend_error, errc::not_held, on.run(held.extend(1s)));
        BOOST_TEST(on.run(on.locker->shutdown()).clean());
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(shutdown_reports_unsettled_locks_and_ignores_late_answers)
{
    cancellable_acquire on;
    auto held = on.acquire("k", {.ttl = 1h});
    on.script->next(operation::release, step::hold());
    auto shutting = on.start(on.locker->shutdown(3s));
    on.advance(2s);
    BOOST_TEST(!shutting.done());
    on.advance(2s);
    BOOST_TEST_REQUIRE(shutting.done());
    const auto report = shutting.get(on.io());
    BOOST_TEST(!report.clean());
    BOOST_TEST_REQUIRE(report.unsettled.size() == 1U);
    BOOST_TEST(report.unsettled[0] == "k");
    BOOST_TEST(on.idle());
    held = {};
    on.locker.reset();
    on.ready();
    on.script->deliver();
    on.ready();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(shutdown_reports_a_body_that_does_not_stop)
{
    cancellable_acquire on;
    bool go_on = true;
    auto body = on.start(on.locker->with_lock("k", {.ttl = 1h}, [&go_on]() -> asio::awaitable<void> {
        co_await asio::this_coro::throw_if_cancelled(false);
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        lease_timer timer(co_await asio::this_coro::executor);
        while (go_on) {
            timer.expires_after(1s);
            co_await timer.async_wait(asio::deferred);
        }
    }));
    on.ready();
    auto shutting = on.start(on.locker->shutdown(3s));
    on.advance_by_steps(4s, 500ms);
    BOOST_TEST_REQUIRE(shutting.done());
    const auto report = shutting.get(on.io());
    BOOST_TEST_REQUIRE(report.still_running.size() == 1U);
    BOOST_TEST(report.still_running[0] == "k");
    BOOST_TEST(on.stored().size() == 1U);
    BOOST_TEST(!body.done());
    go_on = false;
    on.advance_by_steps(2s, 500ms);
    COLOCK_THROWS(lost_error, errc::lost, body.get(on.io()));
}

BOOST_AUTO_TEST_CASE(shutdown_waits_for_creates_in_flight)
{
    cancellable_acquire on;
    on.script->next(operation::create, step::hold());
    on.begin();
    auto shutting = on.start(on.locker->shutdown(1min));
    on.ready();
    BOOST_TEST(on.completions == 1);
    BOOST_TEST((on.result == errc::shutting_down));
    BOOST_TEST(!shutting.done());
    on.script->deliver();
    on.ready();
    BOOST_TEST_REQUIRE(shutting.done());
    BOOST_TEST(shutting.get(on.io()).clean());
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(try_that_is_granted_during_a_shutdown_holds_nothing_afterwards)
{
    cancellable_acquire on;
    on.script->next(operation::create, step::hold());
    auto trying = on.start(on.locker->try_acquire("k"));
    on.ready();
    auto shutting = on.start(on.locker->shutdown(1min));
    on.ready();
    on.script->deliver();
    on.ready();
    BOOST_TEST_REQUIRE(shutting.done());
    COLOCK_THROWS(create_error, errc::shutting_down, trying.get(on.io()));
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(each_has_its_own_deadline)
{
    cancellable_acquire on;
    auto held = on.acquire("k", {.ttl = 1h});
    on.script->next(operation::release, step::hold());
    auto brief = on.start(on.locker->shutdown(5s));
    auto patient = on.start(on.locker->shutdown(1min));
    on.advance_by_steps(6s, 1s);
    BOOST_TEST(brief.done());
    BOOST_TEST(!brief.get(on.io()).clean());
    on.ready();
    BOOST_TEST(patient.done());
    on.script->deliver();
    on.ready();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(cancelled_shutdown_leaves_no_timer)
{
    cancellable_acquire on;
    auto held = on.acquire("k", {.ttl = 1h});
    on.script->next(operation::release, step::hold());
    asio::cancellation_signal cancel;
    error_code result;
    on.locker->async_shutdown(
        1h, asio::bind_cancellation_slot(cancel.slot(), [&](error_code code, shutdown_report) { result = code; }));
    on.ready();
    cancel.emit(asio::cancellation_type::total);
    on.ready();
    BOOST_TEST((result == asio::error::operation_aborted));
    on.script->deliver();
    on.ready();
    on.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
