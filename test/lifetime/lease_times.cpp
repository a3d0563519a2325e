// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/rig.hpp"

#include <colock/observer.hpp>

#include <memory>
#include <string>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// The end of a lease that began at `from`, as its holder counts it: less 1 % and 2 ms.
lease_clock::time_point end_of(std::chrono::milliseconds ttl, lease_clock::time_point from)
{
    return from + ttl - ttl / 100 - 2ms;
}

/// Compares with a tolerance, because real time passes in addition to virtual time.
bool about(lease_clock::time_point time, lease_clock::time_point expected)
{
    return time >= expected && time < expected + 900ms;
}

struct counting_observer : observer
{
    int risks = 0;
    int renewals = 0;
    int losses = 0;

    void at_risk(std::string_view, const error_code&) noexcept override { ++risks; }
    void renewed(std::string_view, std::chrono::nanoseconds) noexcept override { ++renewals; }
    void lost(std::string_view, lost_reason) noexcept override { ++losses; }
};

/// Checks whether a grant of 30 s is kept if its answer arrives after `late`.
void check_late_grant(rig& on, lease_clock::duration late, bool is_kept)
{
    on.script->next(operation::create, step::pass().after([&on, late] { on.clock.skip(late); }));
    auto acquiring = on.start(on.locker->acquire("k", {.ttl = 30s, .retry = retry_policy::never()}));
    on.ready();
    BOOST_TEST_REQUIRE(acquiring.done());
    if (is_kept)
        BOOST_TEST(acquiring.get(on.io()).held());
    else
        COLOCK_THROWS(create_error, errc::unavailable, acquiring.get(on.io()));
    on.wind_down();
    on.check_clean();
}

} // namespace

BOOST_AUTO_TEST_SUITE(lease_times)

BOOST_AUTO_TEST_CASE(grant_counts_from_its_request)
{
    for (const bool tries : {false, true}) {
        for (const auto kind : {behind::immediate, behind::scripted}) {
            rig on(kind);
            on.script->next(operation::create, step::pass().after([&] { on.clock.skip(8s); }));
            const auto sent = lease_clock::now();
            const auto held = tries ? on.run(on.locker->try_acquire("k", {.ttl = 30s})).value()
                                    : on.run(on.locker->acquire("k", {.ttl = 30s}));
            BOOST_TEST(about(held.expires_at(), end_of(30s, sent)));
        }
    }
}

BOOST_AUTO_TEST_CASE(grant_after_a_wait_counts_from_the_successful_attempt)
{
    for (const bool handed_over : {false, true}) {
        rig on(behind::scripted);
        colock::locker other_locker(on.memory);
        auto holder = on.run((handed_over ? *on.locker : other_locker).acquire("k", {.ttl = 1h}));
        auto waiting = on.start(on.locker->acquire("k", {.ttl = 30s}));
        on.advance(20s);
        on.script->next(
            handed_over ? operation::hand_over : operation::create, step::pass().after([&] { on.clock.skip(8s); }));
        const auto sent = lease_clock::now();
        holder = {};
        const auto held = waiting.get(on.io());
        BOOST_TEST(about(held.expires_at(), end_of(30s, sent)));
        BOOST_TEST(on.script->unused() == 0U);
    }
}

BOOST_AUTO_TEST_CASE(extension_counts_from_its_request)
{
    for (const auto kind : {behind::immediate, behind::scripted}) {
        rig on(kind);
        auto held = on.acquire("k", {.ttl = 30s});
        on.advance(5s);
        on.script->next(operation::extend, step::pass().after([&] { on.clock.skip(8s); }));
        const auto sent = lease_clock::now();
        on.run(held.extend(60s));
        BOOST_TEST(about(held.expires_at(), end_of(60s, sent)));
        BOOST_TEST(held.ttl() == 60s);
    }
}

BOOST_AUTO_TEST_CASE(renewal_counts_from_its_request)
{
    for (const auto kind : {behind::immediate, behind::scripted}) {
        rig on(kind);
        auto held = on.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
        lease_clock::time_point sent;
        on.script->next(operation::extend,
            step::pass().before([&] { sent = lease_clock::now(); }).after([&] { on.clock.skip(8s); }));
        on.advance(11s);
        BOOST_TEST_REQUIRE(on.script->count(operation::extend) == 1U);
        BOOST_TEST((held.expires_at() <= end_of(30s, sent)));
        BOOST_TEST((held.expires_at() > end_of(30s, sent) - 900ms));
        // The next renewal is due a third of the TTL after this one was requested, not after its answer.
        on.advance(1s);
        BOOST_TEST(on.script->count(operation::extend) == 1U);
        on.advance(2s);
        BOOST_TEST(on.script->count(operation::extend) == 2U);
    }
}

BOOST_AUTO_TEST_CASE(the_first_renewal_is_due_a_third_of_the_ttl_after_the_request)
{
    for (const auto kind : {behind::immediate, behind::scripted}) {
        rig on(kind);
        on.script->next(operation::create, step::pass().after([&] { on.clock.skip(8s); }));
        const auto held = on.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
        on.advance(1s);
        BOOST_TEST(on.script->count(operation::extend) == 0U);
        on.advance(2s);
        BOOST_TEST(on.script->count(operation::extend) == 1U);
        BOOST_TEST(held.held());
    }
}

BOOST_AUTO_TEST_CASE(a_renewed_lock_keeps_the_ttl_of_its_last_extension)
{
    rig on(behind::scripted);
    auto held = on.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
    on.run(held.extend(90s));
    on.script->forget_calls();
    on.advance_by_steps(29s, 1s);
    BOOST_TEST(on.script->count(operation::extend) == 0U);
    on.advance_by_steps(2s, 1s);
    BOOST_TEST_REQUIRE(on.script->count(operation::extend) == 1U);
    BOOST_TEST(on.script->calls().back().ttl == 90s);
    BOOST_TEST(held.ttl() == 90s);
}

BOOST_AUTO_TEST_CASE(max_hold_bounds_an_explicit_extension)
{
    for (const auto mode : {renewal::automatic, renewal::manual}) {
        for (const auto kind : {behind::memory, behind::scripted}) {
            rig on(kind);
            const auto start = lease_clock::now();
            auto held = on.acquire("k", {.ttl = 10s, .renewal = mode, .max_hold = 25s});
            auto lost = on.start(held.lost());
            on.advance(5s);
            on.run(held.extend(1min));
            BOOST_TEST(about(held.expires_at(), start + 25s));
            on.advance_by_steps(19s, 1s);
            BOOST_TEST(held.held());
            on.advance(2s);
            BOOST_TEST(!held.held());
            BOOST_TEST_REQUIRE(lost.done());
            BOOST_TEST((lost.get(on.io()) == lost_reason::expired));
            on.wind_down();
            on.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(max_hold_bounds_a_grant_with_a_longer_ttl)
{
    rig on;
    const auto start = lease_clock::now();
    const auto held = on.acquire("k", {.ttl = 1min, .max_hold = 25s});
    BOOST_TEST(about(held.expires_at(), start + 25s));
}

BOOST_AUTO_TEST_CASE(renewal_does_not_exceed_max_hold)
{
    rig on(behind::scripted);
    auto held = on.acquire("k", {.ttl = 30s, .renewal = renewal::automatic, .max_hold = 35s});
    on.advance_by_steps(11s, 1s);
    BOOST_TEST_REQUIRE(on.script->count(operation::extend) == 1U);
    const auto asked = on.script->calls().back().ttl;
    BOOST_TEST((asked > 24s));
    BOOST_TEST((asked <= 25s));
    BOOST_TEST(held.ttl() == 30s);
}

BOOST_AUTO_TEST_SUITE_END()

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
    for (const auto kind : {behind::immediate, behind::scripted}) {
        rig on(kind);
        on.script->set_max_clock_lead(lead);
        const auto start = lease_clock::now();
        auto acquired = on.acquire("acquired", {.ttl = 30s});
        BOOST_TEST(about(acquired.expires_at(), early_end_of(30s, start)));
        const auto tried = on.run(on.locker->try_acquire("tried", {.ttl = 30s})).value();
        BOOST_TEST(about(tried.expires_at(), early_end_of(30s, start)));
        const auto all = on.run(on.locker->acquire_all({"all/1", "all/2"}, {.ttl = 30s}));
        for (const auto& each : all.locks())
            BOOST_TEST(about(each.expires_at(), early_end_of(30s, start)));
        auto waiting = on.start(on.locker->acquire("acquired", {.ttl = 1min}));
        on.ready();
        acquired = {};
        auto handed_over = waiting.get(on.io());
        BOOST_TEST(about(handed_over.expires_at(), early_end_of(1min, start)));
        const auto adopted = on.run(on.locker->adopt(on.run(handed_over.detach()), {.ttl = 2min}));
        BOOST_TEST(about(adopted.expires_at(), early_end_of(2min, start)));
    }
}

BOOST_AUTO_TEST_CASE(an_extension_counts_the_lead_from_its_request_on)
{
    for (const auto kind : {behind::immediate, behind::scripted}) {
        rig on(kind);
        on.script->set_max_clock_lead(lead);
        auto held = on.acquire("k", {.ttl = 30s});
        const auto sent = lease_clock::now();
        lease_clock::time_point meanwhile;
        on.script->next(operation::extend, step::pass().before([&] { meanwhile = held.expires_at(); }));
        on.run(held.extend(20s));
        BOOST_TEST(about(meanwhile, early_end_of(20s, sent)));
        BOOST_TEST(about(held.expires_at(), early_end_of(20s, sent)));
        on.run(held.extend(1min));
        BOOST_TEST(about(held.expires_at(), early_end_of(1min, sent)));
    }
}

BOOST_AUTO_TEST_CASE(a_lead_that_appears_counts_from_the_next_renewal_on)
{
    rig on(behind::scripted);
    const auto start = lease_clock::now();
    const auto held = on.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
    on.script->set_max_clock_lead(lead);
    BOOST_TEST(about(held.expires_at(), end_of(30s, start)));
    on.advance(11s);
    BOOST_TEST_REQUIRE(on.script->count(operation::extend) == 1U);
    BOOST_TEST(about(held.expires_at(), early_end_of(30s, start + 11s)));
    on.script->set_max_clock_lead(0s);
    on.advance(11s);
    BOOST_TEST_REQUIRE(on.script->count(operation::extend) == 2U);
    BOOST_TEST(about(held.expires_at(), end_of(30s, start + 22s)));
}

BOOST_AUTO_TEST_CASE(a_lock_is_lost_by_the_lead_before_its_expiry)
{
    rig on(behind::scripted);
    on.script->set_max_clock_lead(lead);
    auto held = on.acquire("k", {.ttl = 30s});
    auto lost = on.start(held.lost());
    on.advance_by_steps(24s, 1s);
    BOOST_TEST(held.held());
    on.advance(1s);
    BOOST_TEST(!held.held());
    BOOST_TEST_REQUIRE(lost.done());
    BOOST_TEST((lost.get(on.io()) == lost_reason::expired));
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(grant_that_the_lead_makes_too_short_is_released)
{
    for (const bool granted : {true, false}) {
        rig on(behind::scripted);
        on.script->set_max_clock_lead(lead);
        // Of 30 s, 24.7 s are usable, and a tenth must be left.
        check_late_grant(on, granted ? 20s : 22s, granted);
    }
}

BOOST_AUTO_TEST_CASE(a_body_is_stopped_by_the_lead_before_its_lease_would_end)
{
    rig on(behind::scripted);
    on.script->set_max_clock_lead(lead);
    const auto start = lease_clock::now();
    lease_clock::time_point stopped;
    auto working = on.start(
        on.locker->with_lock("k", {.ttl = 30s, .renewal = renewal::manual}, [&stopped]() -> asio::awaitable<void> {
            try {
                co_await sleep_for(1h);
            } catch (const boost::system::system_error&) {
                stopped = lease_clock::now();
            }
        }));
    on.advance_by_steps(26s, 50ms);
    BOOST_TEST_REQUIRE(working.done());
    COLOCK_THROWS(lost_error, errc::lost, working.get(on.io()));
    BOOST_TEST(about(stopped, early_end_of(30s, start) - 1s));
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(a_ttl_below_four_leads_is_refused)
{
    rig on(behind::scripted);
    auto held = on.acquire("held", {.ttl = 10s});
    auto moved = on.acquire("moved", {.ttl = 19'999ms});
    const auto ticket = on.run(moved.detach());
    auto group = on.run(on.locker->acquire_all({"a", "b"}, {.ttl = 1min}));
    on.script->set_max_clock_lead(lead);
    const auto refused = [&](auto call) { COLOCK_THROWS(validation_error, errc::invalid_ttl, on.run(call())); };
    refused([&] { return on.locker->acquire("k", {.ttl = 19'999ms}); });
    refused([&] { return on.locker->try_acquire("k", {.ttl = 1s}); });
    refused([&] { return held.extend(19'999ms); });
    refused([&] { return group.extend(1s); });
    refused([&] { return on.locker->group(group.id()).extend(1s); });
    refused([&] { return on.locker->adopt(ticket); });
    BOOST_TEST(on.acquire("k", {.ttl = 20s}).held());
    on.run(held.extend(20s));
    COLOCK_THROWS(validation_error, errc::invalid_ttl, colock::locker(on.script, {.ttl = 19'999ms}));
    colock::locker ample(on.script, {.ttl = 20s});
    // Of 20 s, 14.8 s are usable.
    COLOCK_THROWS(
        validation_error, errc::invalid_options, colock::locker(on.script, {.ttl = 20s, .minimum_validity = 14'798ms}));
    colock::locker demanding(on.script, {.ttl = 20s, .minimum_validity = 14'797ms});
}

BOOST_AUTO_TEST_CASE(a_renewal_before_max_hold_asks_for_no_ttl_below_four_leads)
{
    rig on(behind::scripted);
    on.script->set_max_clock_lead(lead);
    const auto start = lease_clock::now();
    const auto held = on.acquire("k", {.ttl = 30s, .renewal = renewal::automatic, .max_hold = 35s});
    on.advance_by_steps(16s, 1s);
    BOOST_TEST_REQUIRE(on.script->count(operation::extend) == 1U);
    const auto ends = held.expires_at();
    BOOST_TEST(about(ends, early_end_of(25s, start + 10s)));
    // At the next renewal, `max_hold` leaves 15 s. The clock lead would shorten such a lease too much.
    on.advance_by_steps(10s, 1s);
    BOOST_TEST(on.script->count(operation::extend) == 1U);
    BOOST_TEST((held.expires_at() == ends));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(margins)

BOOST_AUTO_TEST_CASE(configured_minimum_validity_decides_about_a_late_grant)
{
    // By default, a tenth of the TTL must be left when the grant arrives.
    struct row
    {
        std::optional<std::chrono::milliseconds> least;
        std::chrono::milliseconds late;
        bool granted;
    };
    for (const auto& [least, late_by, granted] : {row{{}, 20s, true}, row{{}, 27s, false}, row{10s, 18s, true},
             row{10s, 20s, false}, row{0ms, 28s, true}, row{0ms, 31s, false}})
    {
        rig on(behind::scripted, {.minimum_validity = least});
        check_late_grant(on, late_by, granted);
    }
}

BOOST_AUTO_TEST_CASE(a_grant_without_ttl_never_comes_too_late)
{
    rig on(behind::scripted);
    on.script->next(operation::create, step::pass().after([&] { on.clock.skip(24h); }));
    const auto held = on.acquire("k", {.ttl = 0ms, .retry = retry_policy::never()});
    BOOST_TEST(held.held());
    BOOST_TEST((held.expires_at() == lease_clock::time_point::max()));
}

BOOST_AUTO_TEST_CASE(configured_stop_margin_decides_when_a_body_stops)
{
    struct row
    {
        std::optional<std::chrono::milliseconds> margin;
        std::chrono::milliseconds ttl;
        lease_clock::duration stops;
    };
    // The default margin is a tenth of the TTL, at most a second.
    for (const auto& [margin, ttl, stops] :
        {row{{}, 30s, 28698ms}, row{{}, 5s, 4448ms}, row{8s, 30s, 21698ms}, row{0ms, 30s, 29698ms}})
    {
        rig on(behind::memory, {.stop_margin = margin});
        const auto start = lease_clock::now();
        lease_clock::time_point stopped;
        auto working = on.start(
            on.locker->with_lock("k", {.ttl = ttl, .renewal = renewal::manual}, [&stopped]() -> asio::awaitable<void> {
                try {
                    co_await sleep_for(1h);
                } catch (const boost::system::system_error&) {
                    stopped = lease_clock::now();
                }
            }));
        on.advance_by_steps(31s, 50ms);
        BOOST_TEST_REQUIRE(working.done());
        COLOCK_THROWS(lost_error, errc::lost, working.get(on.io()));
        BOOST_TEST(about(stopped, start + stops));
        on.wind_down();
        on.check_clean();
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(sessions)

BOOST_AUTO_TEST_CASE(a_session_bounds_what_it_grants)
{
    for (const auto kind : {behind::immediate, behind::scripted}) {
        rig on(kind);
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
    rig on(behind::scripted);
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
    rig on(behind::scripted);
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
    rig on(behind::scripted);
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
    rig on(behind::scripted);
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
    rig on(behind::scripted);
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
    rig on(behind::scripted);
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
    rig on(behind::scripted, {.observer = listener});
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
    rig on(behind::scripted, {.observer = listener});
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
    const auto ears = std::make_shared<counting_observer>();
    rig on(behind::scripted, {.observer = ears});
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
    BOOST_TEST(ears->losses == 2);
    BOOST_TEST(on.locker->stats().lost(lost_reason::session) == 2U);
    on.ready();
    BOOST_TEST(ears->losses == 2);
    COLOCK_THROWS(release_error, errc::not_held, on.run(held.release(on_failure::raise)));
    on.wind_down();
    on.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()
