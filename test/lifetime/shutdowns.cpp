// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "cancellable_acquire.hpp"

#include <boost/asio/this_coro.hpp>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(shutdowns)

BOOST_AUTO_TEST_CASE(everything_ends_and_the_report_is_clean)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted, backend_kind::immediate}) {
        virtual_fixture env(kind);
        auto held = env.acquire("held");
        auto busy = env.acquire("busy");
        auto lost = env.start(held.lost());
        auto waiting = env.start(env.locker->acquire("busy"));
        auto body = env.start(env.locker->with_lock("body", []() -> asio::awaitable<void> {
            lease_timer timer(co_await asio::this_coro::executor, 1h);
            co_await timer.async_wait(asio::deferred);
        }));
        env.ready();
        const auto report = env.run(env.locker->shutdown(1min));
        BOOST_TEST(report.clean());
        BOOST_TEST(report.unproven == 0U);
        BOOST_TEST(env.stored().empty());
        env.ready();
        COLOCK_THROWS(create_error, errc::shutting_down, waiting.get(env.io()));
        BOOST_TEST((lost.get(env.io()) == lost_reason::shutting_down));
        COLOCK_THROWS(lost_error, errc::lost, body.get(env.io()));
        BOOST_TEST(!held.held());
        if (env.script)
            env.script->forget_calls();
        COLOCK_THROWS(create_error, errc::shutting_down, env.run(env.locker->acquire("k")));
        COLOCK_THROWS(create_error, errc::shutting_down, env.run(env.locker->try_acquire("k")));
        COLOCK_THROWS(create_error, errc::shutting_down, env.run(env.locker->acquire_all({"a", "b"})));
        COLOCK_THROWS(create_error, errc::shutting_down, env.run(env.locker->with_lock("k", [] {})));
        COLOCK_THROWS(extend_error, errc::not_held, env.run(held.extend(1s)));
        if (env.script)
            BOOST_TEST(env.script->calls().empty());
        BOOST_TEST(env.run(env.locker->shutdown()).clean());
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(shutdown_reports_unsettled_locks_and_ignores_late_answers)
{
    cancellable_acquire env;
    auto held = env.acquire("k", {.ttl = 1h});
    env.script->next(operation::release, step::hold());
    auto shutting = env.start(env.locker->shutdown(3s));
    env.advance(2s);
    BOOST_TEST(!shutting.done());
    env.advance(2s);
    BOOST_TEST_REQUIRE(shutting.done());
    const auto report = shutting.get(env.io());
    BOOST_TEST(!report.clean());
    BOOST_TEST_REQUIRE(report.unsettled.size() == 1U);
    BOOST_TEST(report.unsettled[0] == "k");
    BOOST_TEST(report.unproven == 1U);
    const auto stats = env.locker->stats();
    BOOST_TEST(stats.settled == 1U);
    BOOST_TEST(stats.unproven == 1U);
    BOOST_TEST(stats.releases == 0U);
    BOOST_TEST(env.idle());
    held = {};
    env.locker.reset();
    env.ready();
    env.script->deliver();
    env.ready();
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(shutdown_reports_a_body_that_does_not_stop)
{
    cancellable_acquire env;
    bool go_on = true;
    auto body = env.start(env.locker->with_lock("k", {.ttl = 1h}, [&go_on]() -> asio::awaitable<void> {
        co_await asio::this_coro::throw_if_cancelled(false);
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        lease_timer timer(co_await asio::this_coro::executor);
        while (go_on) {
            timer.expires_after(1s);
            co_await timer.async_wait(asio::deferred);
        }
    }));
    env.ready();
    auto shutting = env.start(env.locker->shutdown(3s));
    env.advance_by_steps(4s, 500ms);
    BOOST_TEST_REQUIRE(shutting.done());
    const auto report = shutting.get(env.io());
    BOOST_TEST_REQUIRE(report.still_running.size() == 1U);
    BOOST_TEST(report.still_running[0] == "k");
    BOOST_TEST(env.stored().size() == 1U);
    BOOST_TEST(!body.done());
    go_on = false;
    env.advance_by_steps(2s, 500ms);
    COLOCK_THROWS(lost_error, errc::lost, body.get(env.io()));
}

BOOST_AUTO_TEST_CASE(each_has_its_own_deadline)
{
    cancellable_acquire env;
    auto held = env.acquire("k", {.ttl = 1h});
    env.script->next(operation::release, step::hold());
    auto brief = env.start(env.locker->shutdown(5s));
    auto patient = env.start(env.locker->shutdown(1min));
    env.advance_by_steps(6s, 1s);
    BOOST_TEST(brief.done());
    BOOST_TEST(!brief.get(env.io()).clean());
    env.ready();
    BOOST_TEST(patient.done());
    env.script->deliver();
    env.ready();
    env.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
