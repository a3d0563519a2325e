// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// Acquires a lock by either operation, and releases it at once.
asio::awaitable<void> ask(colock::locker by, bool only_tries)
{
    if (only_tries)
        static_cast<void>(co_await by.try_acquire("k", {.ttl = 1h}));
    else
        static_cast<void>(co_await by.acquire("k", {.ttl = 1h}));
}

} // namespace

BOOST_AUTO_TEST_SUITE(shutdowns_in_doubt)

BOOST_AUTO_TEST_CASE(shutdown_reports_locks_that_may_still_be_granted)
{
    for (const bool only_tries : {false, true}) {
        virtual_fixture on(backend_kind::scripted);
        on.script->next(operation::create, step::hold());
        auto asking = on.start(ask(*on.locker, only_tries));
        on.ready();
        const auto report = on.run(on.locker->shutdown(0ms));
        BOOST_TEST(!report.clean());
        BOOST_TEST_REQUIRE(report.unsettled.size() == 1U);
        BOOST_TEST(report.unsettled.front() == "k");
        on.script->deliver();
        on.ready();
        COLOCK_THROWS(create_error, errc::shutting_down, asking.get(on.io()));
        BOOST_TEST(on.stored().empty());
        // The lock has been released since then.
        BOOST_TEST(on.run(on.locker->shutdown(0ms)).clean());
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(shutdown_reports_an_unreleased_late_grant)
{
    virtual_fixture on(backend_kind::scripted);
    on.script->next(operation::create, step::hold());
    auto asking = on.start(ask(*on.locker, false));
    on.ready();
    on.script->next(operation::release, step::hold());
    on.script->next(operation::abandon, step::hold());
    auto shutdown = on.start(on.locker->shutdown(3s));
    on.ready();
    on.script->deliver();
    on.advance(4s);
    BOOST_TEST_REQUIRE(shutdown.done());
    BOOST_TEST(shutdown.get(on.io()).unsettled.size() == 1U);
    COLOCK_THROWS(create_error, errc::shutting_down, asking.get(on.io()));
    on.script->reset();
    while (on.script->deliver())
        on.ready();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(plain_waiter_is_not_reported_as_unsettled)
{
    virtual_fixture on(backend_kind::scripted);
    auto can = on.script->capabilities();
    can.fifo = false;
    on.script->set_capabilities(can);
    colock::locker by(on.script);
    auto holder = on.acquire("k", {.ttl = 0ms});
    auto asking = on.start(ask(by, false));
    on.ready();
    BOOST_TEST(on.run(by.shutdown(0ms)).clean());
    COLOCK_THROWS(create_error, errc::shutting_down, asking.get(on.io()));
    holder = {};
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(second_shutdown_reports_the_unsettled_locks_of_the_first)
{
    virtual_fixture on(backend_kind::scripted);
    auto held = on.acquire("k", {.ttl = 1h});
    on.script->next(operation::release, step::hold());
    for (const auto deadline : {0ms, 60'000ms}) {
        const auto report = on.run(on.locker->shutdown(deadline));
        BOOST_TEST_REQUIRE(report.unsettled.size() == 1U);
        BOOST_TEST(report.unsettled.front() == "k");
    }
    on.script->deliver();
    held = {};
    on.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
