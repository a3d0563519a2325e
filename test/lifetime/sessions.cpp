// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Leases that end with a session of the backend, and lost contact to the backend.
#include "support/virtual_fixture.hpp"

#include <colock/observer.hpp>

#include <chrono>
#include <memory>
#include <string_view>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(sessions)

namespace {

struct counting_observer : observer
{
    int risks = 0;
    int renewals = 0;
    int losses = 0;

    void at_risk(std::string_view, const error_code&) noexcept override { ++risks; }
    void renewed(std::string_view, std::chrono::nanoseconds) noexcept override { ++renewals; }
    void lost(std::string_view, lost_reason, std::chrono::nanoseconds) noexcept override { ++losses; }
};

} // namespace

BOOST_AUTO_TEST_CASE(a_session_bounds_what_it_grants)
{
    for (const auto kind : {backend_kind::immediate, backend_kind::scripted}) {
        virtual_fixture on(kind);
        const auto start = lease_clock::now();
        on.script->open_session(start + 10s);
        auto held = on.acquire("k", {.ttl = 30s});
        BOOST_TEST((held.expires_at() == start + 10s));
        on.run(held.extend(1h));
        BOOST_TEST((held.expires_at() == start + 10s));
        on.advance(9s);
        BOOST_TEST(held.held());
        on.advance(2s);
        BOOST_TEST(!held.held());
        BOOST_TEST(on.stored().size() == 1U);
        COLOCK_THROWS(extend_error, errc::not_held, on.run(held.extend(1h)));
    }
}

BOOST_AUTO_TEST_CASE(extended_session_delays_the_loss)
{
    virtual_fixture on(backend_kind::scripted);
    const auto start = lease_clock::now();
    on.script->open_session(start + 10s);
    auto held = on.acquire("k", {.ttl = 1h});
    auto lost = on.start(held.lost());
    on.ready();
    for (int beat = 1; beat <= 5; ++beat) {
        BOOST_TEST(on.script->raise_session(lease_clock::now() + 10s));
        on.advance(5s);
        BOOST_TEST(held.held());
        BOOST_TEST(!lost.done());
    }
    on.advance_by_steps(6s, 500ms);
    BOOST_TEST(!held.held());
    BOOST_TEST(lost.done());
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(ended_session_stays_ended)
{
    virtual_fixture on(backend_kind::scripted);
    on.script->open_session(lease_clock::now() + 10s);
    auto early = on.acquire("k", {.ttl = 1h});
    auto unseen = on.acquire("l", {.ttl = 1h});
    auto lost = on.start(unseen.lost());
    on.ready();
    on.clock.skip(11s);
    BOOST_TEST(!early.held());
    BOOST_TEST(!on.script->raise_session(lease_clock::now() + 10s));
    BOOST_TEST(!early.held());
    BOOST_TEST(!unseen.held());
    on.advance(0s);
    BOOST_TEST_REQUIRE(lost.done());
    BOOST_TEST((lost.get(on.io()) == lost_reason::session));
    // The backend opens another session.
    on.script->open_session(lease_clock::now() + 10s);
    BOOST_TEST(!early.held());
    auto later = on.acquire("m", {.ttl = 1h});
    BOOST_TEST(on.script->raise_session(lease_clock::now() + 20s));
    on.advance(15s);
    BOOST_TEST(later.held());
    BOOST_TEST(!early.held());
}

BOOST_AUTO_TEST_CASE(a_grant_needs_enough_of_its_session)
{
    virtual_fixture on(backend_kind::scripted);
    on.script->open_session(lease_clock::now() + 99ms);
    COLOCK_THROWS(create_error, errc::unavailable, on.acquire("k", {.ttl = 30s, .retry = retry_policy::never()}));
    on.ready();
    BOOST_TEST(on.stored().empty());
    // A session may be short, because it is extended continuously.
    on.script->open_session(lease_clock::now() + 200ms);
    BOOST_TEST(on.acquire("k", {.ttl = 30s, .retry = retry_policy::never()}).held());
}

BOOST_AUTO_TEST_CASE(core_ends_leases_if_the_backend_expires_nothing)
{
    virtual_fixture on(backend_kind::scripted);
    auto can = on.script->capabilities();
    can.expires = false;
    on.script->set_capabilities(can);
    // Only lockers that are made from now on use the new capabilities.
    on.locker.emplace(on.script);
    auto held = on.acquire("k", {.ttl = 30s});
    on.advance(31s);
    BOOST_TEST(!held.held());
    BOOST_TEST(on.script->count(operation::release) == 1U);
    BOOST_TEST(on.locker->stats().lost(lost_reason::expired) == 1U);
}

BOOST_AUTO_TEST_CASE(release_is_repeated_until_answered_if_the_backend_expires_nothing)
{
    virtual_fixture on(backend_kind::scripted);
    auto can = on.script->capabilities();
    can.expires = false;
    on.script->set_capabilities(can);
    on.locker.emplace(on.script);
    auto held = on.acquire("k", {.ttl = 1s});
    on.script->always(operation::release, step::fail(errc::unavailable));
    on.script->always(operation::abandon, step::fail(errc::unavailable));
    held = {};
    on.advance_by_steps(1h, 10s);
    BOOST_TEST(on.locker->stats().settling == 1U);
    on.script->reset();
    on.advance(10s);
    BOOST_TEST(on.locker->stats().settling == 0U);
    BOOST_TEST(on.locker->stats().unproven == 0U);
}

BOOST_AUTO_TEST_CASE(a_body_stops_before_its_session_can_end)
{
    virtual_fixture on(backend_kind::scripted);
    on.script->open_session(lease_clock::now() + 10s);
    bool stopped = false;
    auto working = on.start(on.locker->with_lock("k", {.ttl = 1h}, [&stopped]() -> asio::awaitable<void> {
        try {
            co_await sleep_for(24h);
        } catch (const boost::system::system_error&) {
            stopped = true;
        }
    }));
    on.ready();
    on.advance(8500ms);
    BOOST_TEST(!stopped);
    on.advance(1s);
    BOOST_TEST(stopped);
    COLOCK_THROWS(lost_error, errc::lost, working.get(on.io()));
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(lost_contact_is_reported_for_each_lock_and_renewals_are_due_at_once)
{
    const auto listener = std::make_shared<counting_observer>();
    virtual_fixture on(backend_kind::scripted, {.observer = listener});
    auto renewed = on.acquire("r", {.ttl = 1min, .renewal = renewal::automatic});
    auto manual = on.acquire("m", {.ttl = 1min});
    on.script->notify_suspended(errc::unavailable);
    on.ready();
    BOOST_TEST(listener->risks == 2);
    BOOST_TEST_REQUIRE(on.script->count(operation::extend) == 1U);
    BOOST_TEST(on.script->calls().back().key == "r");
    BOOST_TEST(listener->renewals == 1);
    BOOST_TEST(renewed.held());
    BOOST_TEST(manual.held());
    // The next renewal is due after a third of the TTL.
    on.advance_by_steps(21s, 1s);
    BOOST_TEST(listener->renewals == 2);
    // Connection attempts that fail while there is no contact do not report another loss of contact.
    on.script->notify_unreachable(make_failure(errc::unavailable), "here:1");
    on.ready();
    BOOST_TEST(listener->risks == 2);
    // A released lock is not at risk.
    on.script->notify_reconnected();
    renewed = {};
    on.ready();
    on.script->notify_suspended(errc::unavailable);
    on.ready();
    BOOST_TEST(listener->risks == 3);
}

BOOST_AUTO_TEST_CASE(failed_connection_after_an_idle_time_is_a_loss_of_contact)
{
    const auto listener = std::make_shared<counting_observer>();
    virtual_fixture on(backend_kind::scripted, {.observer = listener});
    const auto failed = make_failure(errc::unavailable, "nobody listens");
    on.script->notify_unreachable(failed, "here:1");
    on.script->notify_ready();
    auto held = on.acquire("k", {.ttl = 1min});
    BOOST_TEST(listener->risks == 0);
    on.script->notify_unreachable(failed, "here:1");
    on.script->notify_unreachable(failed, "here:1");
    on.ready();
    BOOST_TEST(listener->risks == 1);
}

BOOST_AUTO_TEST_CASE(end_of_a_session_ends_its_locks)
{
    const auto listener = std::make_shared<counting_observer>();
    virtual_fixture on(backend_kind::scripted, {.observer = listener});
    on.script->open_session(lease_clock::now() + 1h);
    auto held = on.acquire("k", {.ttl = 1h});
    auto lost = on.start(held.lost());
    auto working = on.start(on.locker->with_lock("w", {.ttl = 1h}, [] { return sleep_for(24h); }));
    on.ready();
    on.script->end_session();
    on.ready();
    BOOST_TEST(!held.held());
    BOOST_TEST_REQUIRE(lost.done());
    BOOST_TEST((lost.get(on.io()) == lost_reason::session));
    COLOCK_THROWS(lost_error, errc::lost, working.get(on.io()));
    BOOST_TEST(listener->losses == 2);
    BOOST_TEST(on.locker->stats().lost(lost_reason::session) == 2U);
    on.ready();
    BOOST_TEST(listener->losses == 2);
    COLOCK_THROWS(release_error, errc::not_held, on.run(held.release(on_failure::raise)));
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
