// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/set_capabilities.hpp"
#include "support/virtual_fixture.hpp"

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// Acquires a lock by either operation, and releases it at once.
asio::awaitable<void> ask(colock::locker by, bool single_attempt)
{
    if (single_attempt)
        static_cast<void>(co_await by.try_acquire("k", {.ttl = 1h}));
    else
        static_cast<void>(co_await by.acquire("k", {.ttl = 1h}));
}

} // namespace

BOOST_AUTO_TEST_SUITE(shutdowns_in_doubt)

BOOST_AUTO_TEST_CASE(shutdown_reports_locks_that_may_still_be_granted)
{
    for (const bool single_attempt : {false, true}) {
        virtual_fixture env(backend_kind::scripted);
        env.script->next(operation::create, step::hold());
        auto asking = env.start(ask(*env.locker, single_attempt));
        env.ready();
        const auto report = env.run(env.locker->shutdown(0ms));
        BOOST_TEST(!report.clean());
        BOOST_TEST_REQUIRE(report.unsettled.size() == 1U);
        BOOST_TEST(report.unsettled.front() == "k");
        env.script->deliver();
        env.ready();
        COLOCK_THROWS(create_error, errc::shutting_down, asking.get(env.io()));
        BOOST_TEST(env.stored().empty());
        // The lock has been released since then.
        BOOST_TEST(env.run(env.locker->shutdown(0ms)).clean());
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(shutdown_reports_an_unreleased_late_grant)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->next(operation::create, step::hold());
    auto asking = env.start(ask(*env.locker, false));
    env.ready();
    env.script->next(operation::release, step::hold());
    env.script->next(operation::abandon, step::hold());
    auto shutdown = env.start(env.locker->shutdown(3s));
    env.ready();
    env.script->deliver();
    env.advance(4s);
    BOOST_TEST_REQUIRE(shutdown.done());
    BOOST_TEST(shutdown.get(env.io()).unsettled.size() == 1U);
    COLOCK_THROWS(create_error, errc::shutting_down, asking.get(env.io()));
    env.script->reset();
    while (env.script->deliver())
        env.ready();
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(plain_waiter_is_not_reported_as_unsettled)
{
    virtual_fixture env(backend_kind::scripted);
    disable(env, {&capabilities::fifo});
    colock::locker by(env.script);
    auto holder = env.acquire("k", {.ttl = 0ms});
    auto asking = env.start(ask(by, false));
    env.ready();
    BOOST_TEST(env.run(by.shutdown(0ms)).clean());
    COLOCK_THROWS(create_error, errc::shutting_down, asking.get(env.io()));
    holder = {};
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(second_shutdown_reports_the_unsettled_locks_of_the_first)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("k", {.ttl = 1h});
    env.script->next(operation::release, step::hold());
    for (const auto deadline : {0ms, 60'000ms}) {
        const auto report = env.run(env.locker->shutdown(deadline));
        BOOST_TEST_REQUIRE(report.unsettled.size() == 1U);
        BOOST_TEST(report.unsettled.front() == "k");
    }
    env.script->deliver();
    held = {};
    env.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
