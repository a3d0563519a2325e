// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Leases that end with a session of the backend, and lost contact to the backend.
#include "support/set_capabilities.hpp"
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

BOOST_AUTO_TEST_CASE(lease_ends_with_its_session_at_the_latest)
{
    for (const auto kind : {backend_kind::immediate, backend_kind::scripted}) {
        virtual_fixture env(kind);
        const auto start = lease_clock::now();
        env.script->open_session(start + 10s);
        auto held = env.acquire("k", {.ttl = 30s});
        BOOST_TEST((held.expires_at() == start + 10s));
        env.run(held.extend(1h));
        BOOST_TEST((held.expires_at() == start + 10s));
        env.advance(9s);
        BOOST_TEST(held.held());
        env.advance(2s);
        BOOST_TEST(!held.held());
        BOOST_TEST(env.stored().size() == 1U);
        COLOCK_THROWS(extend_error, errc::not_held, env.run(held.extend(1h)));
    }
}

BOOST_AUTO_TEST_CASE(extended_session_delays_the_loss)
{
    virtual_fixture env(backend_kind::scripted);
    const auto start = lease_clock::now();
    env.script->open_session(start + 10s);
    auto held = env.acquire("k", {.ttl = 1h});
    auto lost = env.start(held.lost());
    env.ready();
    for (int beat = 1; beat <= 5; ++beat) {
        BOOST_TEST(env.script->extend_session(lease_clock::now() + 10s));
        env.advance(5s);
        BOOST_TEST(held.held());
        BOOST_TEST(!lost.done());
    }
    env.advance_by_steps(6s, 500ms);
    BOOST_TEST(!held.held());
    BOOST_TEST(lost.done());
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(ended_session_stays_ended)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->open_session(lease_clock::now() + 10s);
    auto early = env.acquire("k", {.ttl = 1h});
    auto unchecked = env.acquire("l", {.ttl = 1h});
    auto lost = env.start(unchecked.lost());
    env.ready();
    env.clock.skip(11s);
    // Only `early` is checked before the session is extended too late.
    BOOST_TEST(!early.held());
    BOOST_TEST(!env.script->extend_session(lease_clock::now() + 10s));
    BOOST_TEST(!early.held());
    BOOST_TEST(!unchecked.held());
    env.advance(0s);
    BOOST_TEST_REQUIRE(lost.done());
    BOOST_TEST((lost.get(env.io()) == lost_reason::session));
    // The backend opens another session.
    env.script->open_session(lease_clock::now() + 10s);
    BOOST_TEST(!early.held());
    auto later = env.acquire("m", {.ttl = 1h});
    BOOST_TEST(env.script->extend_session(lease_clock::now() + 20s));
    env.advance(15s);
    BOOST_TEST(later.held());
    BOOST_TEST(!early.held());
}

BOOST_AUTO_TEST_CASE(grant_of_a_session_that_ends_too_soon_is_refused)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->open_session(lease_clock::now() + 99ms);
    COLOCK_THROWS(create_error, errc::unavailable, env.acquire("k", {.ttl = 30s, .retry = retry_policy::never()}));
    env.ready();
    BOOST_TEST(env.stored().empty());
    // A session may be short, because it is extended continuously.
    env.script->open_session(lease_clock::now() + 200ms);
    BOOST_TEST(env.acquire("k", {.ttl = 30s, .retry = retry_policy::never()}).held());
}

BOOST_AUTO_TEST_CASE(core_ends_leases_if_the_backend_expires_nothing)
{
    virtual_fixture env(backend_kind::scripted);
    disable(env, {&capabilities::expires});
    auto held = env.acquire("k", {.ttl = 30s});
    env.advance(31s);
    BOOST_TEST(!held.held());
    BOOST_TEST(env.script->count(operation::release) == 1U);
    BOOST_TEST(env.locker->stats().lost(lost_reason::expired) == 1U);
}

BOOST_AUTO_TEST_CASE(release_is_repeated_until_answered_if_the_backend_expires_nothing)
{
    virtual_fixture env(backend_kind::scripted);
    disable(env, {&capabilities::expires});
    auto held = env.acquire("k", {.ttl = 1s});
    env.script->always(operation::release, step::fail(errc::unavailable));
    env.script->always(operation::abandon, step::fail(errc::unavailable));
    held = {};
    env.advance_by_steps(1h, 10s);
    BOOST_TEST(env.locker->stats().settling == 1U);
    env.script->reset();
    env.advance(10s);
    BOOST_TEST(env.locker->stats().settling == 0U);
    BOOST_TEST(env.locker->stats().unproven == 0U);
}

BOOST_AUTO_TEST_CASE(a_body_stops_before_its_session_can_end)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->open_session(lease_clock::now() + 10s);
    bool stopped = false;
    auto working = env.start(env.locker->with_lock("k", {.ttl = 1h}, [&stopped]() -> asio::awaitable<void> {
        try {
            co_await sleep_for(24h);
        } catch (const boost::system::system_error&) {
            stopped = true;
        }
    }));
    env.ready();
    env.advance(8500ms);
    BOOST_TEST(!stopped);
    env.advance(1s);
    BOOST_TEST(stopped);
    COLOCK_THROWS(lost_error, errc::lost, working.get(env.io()));
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(lost_contact_is_reported_for_each_lock_and_renewals_are_due_at_once)
{
    const auto listener = std::make_shared<counting_observer>();
    virtual_fixture env(backend_kind::scripted, {.observer = listener});
    auto renewed = env.acquire("r", {.ttl = 1min, .renewal = renewal::automatic});
    auto manual = env.acquire("m", {.ttl = 1min});
    env.script->contact().set_up();
    env.script->contact().set_down(errc::unavailable);
    env.ready();
    BOOST_TEST(listener->risks == 2);
    BOOST_TEST_REQUIRE(env.script->count(operation::extend) == 1U);
    BOOST_TEST(env.script->calls().back().key == "r");
    BOOST_TEST(listener->renewals == 1);
    BOOST_TEST(renewed.held());
    BOOST_TEST(manual.held());
    // The next renewal is due after a third of the TTL.
    env.advance_by_steps(21s, 1s);
    BOOST_TEST(listener->renewals == 2);
    // Connection attempts that fail while there is no contact do not report another loss of contact.
    env.script->contact().set_down(make_failure(errc::unavailable), "here:1");
    env.ready();
    BOOST_TEST(listener->risks == 2);
    // A released lock is not at risk.
    env.script->contact().set_up();
    renewed = {};
    env.ready();
    env.script->contact().set_down(errc::unavailable);
    env.ready();
    BOOST_TEST(listener->risks == 3);
}

BOOST_AUTO_TEST_CASE(failed_connection_after_an_idle_time_is_a_loss_of_contact)
{
    const auto listener = std::make_shared<counting_observer>();
    virtual_fixture env(backend_kind::scripted, {.observer = listener});
    const auto failed = make_failure(errc::unavailable, "nobody listens");
    env.script->contact().set_down(failed, "here:1");
    env.script->contact().set_up();
    auto held = env.acquire("k", {.ttl = 1min});
    BOOST_TEST(listener->risks == 0);
    env.script->contact().set_connecting("here:1");
    env.script->contact().set_down(failed, "here:1");
    env.script->contact().set_down(failed, "here:1");
    env.ready();
    BOOST_TEST(listener->risks == 1);
}

BOOST_AUTO_TEST_CASE(end_of_a_session_ends_its_locks)
{
    const auto listener = std::make_shared<counting_observer>();
    virtual_fixture env(backend_kind::scripted, {.observer = listener});
    env.script->open_session(lease_clock::now() + 1h);
    auto held = env.acquire("k", {.ttl = 1h});
    auto lost = env.start(held.lost());
    auto working = env.start(env.locker->with_lock("w", {.ttl = 1h}, [] { return sleep_for(24h); }));
    env.ready();
    env.script->end_session();
    env.ready();
    BOOST_TEST(!held.held());
    BOOST_TEST_REQUIRE(lost.done());
    BOOST_TEST((lost.get(env.io()) == lost_reason::session));
    COLOCK_THROWS(lost_error, errc::lost, working.get(env.io()));
    BOOST_TEST(listener->losses == 2);
    BOOST_TEST(env.locker->stats().lost(lost_reason::session) == 2U);
    env.ready();
    BOOST_TEST(listener->losses == 2);
    COLOCK_THROWS(release_error, errc::not_held, env.run(held.release(on_failure::raise)));
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_SUITE_END()
