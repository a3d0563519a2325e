// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Leases of a backend whose clock may jump ahead: each ends earlier by the clock's lead.
#include "lease_ends.hpp"
#include "support/virtual_fixture.hpp"

#include <chrono>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(clock_leads)

namespace {

constexpr auto lead = 5s;

/// The end of a lease if the backend's clock may jump ahead by `lead`.
lease_clock::time_point early_end_of(std::chrono::milliseconds ttl, lease_clock::time_point from)
{
    return end_of(ttl, from) - lead;
}

} // namespace

BOOST_AUTO_TEST_CASE(every_kind_of_lease_is_shortened_by_the_lead)
{
    for (const auto kind : {backend_kind::immediate, backend_kind::scripted}) {
        virtual_fixture env(kind);
        env.script->set_max_clock_lead(lead);
        const auto start = lease_clock::now();
        auto acquired = env.acquire("acquired", {.ttl = 30s});
        BOOST_TEST(about(acquired.expires_at(), early_end_of(30s, start)));
        const auto tried = env.run(env.locker->try_acquire("tried", {.ttl = 30s})).value();
        BOOST_TEST(about(tried.expires_at(), early_end_of(30s, start)));
        const auto all = env.run(env.locker->acquire_all({"all/1", "all/2"}, {.ttl = 30s}));
        for (const auto& each : all.locks())
            BOOST_TEST(about(each.expires_at(), early_end_of(30s, start)));
        auto waiting = env.start(env.locker->acquire("acquired", {.ttl = 1min}));
        env.ready();
        acquired = {};
        auto handed_over = waiting.get(env.io());
        BOOST_TEST(about(handed_over.expires_at(), early_end_of(1min, start)));
        const auto adopted = env.run(env.locker->adopt(env.run(handed_over.detach()), {.ttl = 2min}));
        BOOST_TEST(about(adopted.expires_at(), early_end_of(2min, start)));
    }
}

BOOST_AUTO_TEST_CASE(an_extension_counts_the_lead_from_its_request_on)
{
    for (const auto kind : {backend_kind::immediate, backend_kind::scripted}) {
        virtual_fixture env(kind);
        env.script->set_max_clock_lead(lead);
        auto held = env.acquire("k", {.ttl = 30s});
        const auto sent = lease_clock::now();
        lease_clock::time_point meanwhile;
        env.script->next(operation::extend, step::pass().before([&] { meanwhile = held.expires_at(); }));
        env.run(held.extend(20s));
        BOOST_TEST(about(meanwhile, early_end_of(20s, sent)));
        BOOST_TEST(about(held.expires_at(), early_end_of(20s, sent)));
        env.run(held.extend(1min));
        BOOST_TEST(about(held.expires_at(), early_end_of(1min, sent)));
    }
}

BOOST_AUTO_TEST_CASE(a_lead_that_appears_counts_from_the_next_renewal_on)
{
    virtual_fixture env(backend_kind::scripted);
    const auto start = lease_clock::now();
    const auto held = env.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
    env.script->set_max_clock_lead(lead);
    BOOST_TEST(about(held.expires_at(), end_of(30s, start)));
    env.advance(11s);
    BOOST_TEST_REQUIRE(env.script->count(operation::extend) == 1U);
    BOOST_TEST(about(held.expires_at(), early_end_of(30s, start + 11s)));
    env.script->set_max_clock_lead(0s);
    env.advance(11s);
    BOOST_TEST_REQUIRE(env.script->count(operation::extend) == 2U);
    BOOST_TEST(about(held.expires_at(), end_of(30s, start + 22s)));
}

BOOST_AUTO_TEST_CASE(a_ttl_below_four_leads_is_refused)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("held", {.ttl = 10s});
    auto moved = env.acquire("moved", {.ttl = 19'999ms});
    const auto ticket = env.run(moved.detach());
    auto group = env.run(env.locker->acquire_all({"a", "b"}, {.ttl = 1min}));
    env.script->set_max_clock_lead(lead);
    const auto refused = [&](auto call) { COLOCK_THROWS(validation_error, errc::invalid_ttl, env.run(call())); };
    refused([&] { return env.locker->acquire("k", {.ttl = 19'999ms}); });
    refused([&] { return env.locker->try_acquire("k", {.ttl = 1s}); });
    refused([&] { return held.extend(19'999ms); });
    refused([&] { return group.extend(1s); });
    refused([&] { return env.locker->group(group.id()).extend(1s); });
    refused([&] { return env.locker->adopt(ticket); });
    BOOST_TEST(env.acquire("k", {.ttl = 20s}).held());
    env.run(held.extend(20s));
    COLOCK_THROWS(validation_error, errc::invalid_ttl, colock::locker(env.script, {.ttl = 19'999ms}));
    colock::locker ample(env.script, {.ttl = 20s});
    // The locker may use 14.8 s of 20 s.
    COLOCK_THROWS(validation_error, errc::invalid_options,
        colock::locker(env.script, {.ttl = 20s, .minimum_validity = 14'798ms}));
    colock::locker demanding(env.script, {.ttl = 20s, .minimum_validity = 14'797ms});
}

BOOST_AUTO_TEST_CASE(a_renewal_before_max_hold_asks_for_no_ttl_below_four_leads)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->set_max_clock_lead(lead);
    const auto start = lease_clock::now();
    const auto held = env.acquire("k", {.ttl = 30s, .renewal = renewal::automatic, .max_hold = 35s});
    env.advance_by_steps(16s, 1s);
    BOOST_TEST_REQUIRE(env.script->count(operation::extend) == 1U);
    const auto ends = held.expires_at();
    BOOST_TEST(about(ends, early_end_of(25s, start + 10s)));
    // At the next renewal, `max_hold` leaves 15 s. The clock lead would shorten such a lease too much.
    env.advance_by_steps(10s, 1s);
    BOOST_TEST(env.script->count(operation::extend) == 1U);
    BOOST_TEST((held.expires_at() == ends));
}

BOOST_AUTO_TEST_SUITE_END()
