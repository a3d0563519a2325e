// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/virtual_fixture.hpp"
#include "usual_options.hpp"

#include <colock/observer.hpp>

#include <memory>
#include <optional>
#include <string_view>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// Counts the reported renewals.
struct counting_observer : observer
{
    int renewals = 0;

    void renewed(std::string_view, std::chrono::nanoseconds) noexcept override { ++renewals; }
};

} // namespace

BOOST_AUTO_TEST_SUITE(counters)

BOOST_AUTO_TEST_CASE(every_attempt_and_every_wait_is_counted)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        auto held = env.acquire("k");
        BOOST_TEST(env.locker->stats().attempts == 1U);
        for (const auto wait : {9s, 3s}) {
            auto waiting = env.start(env.locker->acquire("k", {.retry = rarely}));
            env.advance(wait);
            held = {};
            held = waiting.get(env.io());
        }
        const auto stats = env.locker->stats();
        BOOST_TEST(stats.grants == 3U);
        BOOST_TEST(stats.waits == 2U);
        BOOST_TEST((stats.waited_total >= 12s));
        BOOST_TEST((stats.waited_longest >= 9s));
        BOOST_TEST((stats.waited_longest < 11s));
    }
}

BOOST_AUTO_TEST_CASE(an_explicit_extension_is_no_renewal)
{
    const auto counts = std::make_shared<counting_observer>();
    virtual_fixture env(backend_kind::scripted, {.observer = counts});
    auto held = env.acquire("k", {.ttl = 1h, .renewal = renewal::automatic});
    env.run(held.extend(1h));
    env.script->next(operation::extend, step::fail(errc::unavailable));
    COLOCK_THROWS(extend_error, errc::unavailable, env.run(held.extend(1h)));
    BOOST_TEST(env.locker->stats().renewals == 0U);
    BOOST_TEST(env.locker->stats().renewal_errors == 0U);
    BOOST_TEST(counts->renewals == 0);
}

BOOST_AUTO_TEST_CASE(expiry_detected_by_an_extension_is_a_loss)
{
    virtual_fixture env;
    auto held = env.acquire("k", {.ttl = 10s});
    env.clock.skip(20s);
    COLOCK_THROWS(extend_error, errc::not_held, env.run(held.extend(10s)));
    BOOST_TEST(env.locker->stats().lost(lost_reason::expired) == 1U);
    BOOST_TEST(env.locker->stats().held == 0U);
}

BOOST_AUTO_TEST_CASE(expired_lock_is_not_counted_as_held)
{
    virtual_fixture env;
    const auto expiring = env.acquire("k", {.ttl = 10s});
    const auto endless = env.acquire("l", {.ttl = 0ms});
    BOOST_TEST(env.locker->stats().held == 2U);
    env.clock.skip(20s);
    BOOST_TEST(env.locker->stats().held == 1U);
    BOOST_TEST(env.locker->held_locks().size() == 1U);
}

BOOST_AUTO_TEST_CASE(expiry_of_a_renewed_lock_is_detected_without_a_waiting_coroutine)
{
    virtual_fixture env(backend_kind::scripted);
    const auto held = env.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
    env.script->always(operation::extend, step::fail(errc::unavailable));
    env.advance_by_steps(31s, 500ms);
    BOOST_TEST(env.locker->stats().lost(lost_reason::expired) == 1U);
    BOOST_TEST(env.locker->stats().renewal_errors > 0U);
    BOOST_TEST(env.script->count(operation::release) == 1U);
    // The renewal is tried again every second.
    BOOST_TEST(env.script->count(operation::extend) >= 15U);
    BOOST_TEST(env.script->count(operation::extend) <= 21U);
}

BOOST_AUTO_TEST_CASE(renewal_that_is_unanswered_when_the_lease_ends_is_counted_once)
{
    virtual_fixture env(backend_kind::scripted);
    const auto held = env.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
    env.script->next(operation::extend, step::hold());
    env.advance_by_steps(31s, 500ms);
    BOOST_TEST(env.locker->stats().lost(lost_reason::expired) == 1U);
    BOOST_TEST(env.locker->stats().renewal_errors == 1U);
    BOOST_TEST(env.script->deliver());
    env.ready();
    BOOST_TEST(env.locker->stats().renewal_errors == 1U);
    BOOST_TEST(env.locker->stats().renewals == 0U);
}

BOOST_AUTO_TEST_CASE(renewal_that_is_unanswered_at_a_shutdown_is_no_error)
{
    virtual_fixture env(backend_kind::scripted);
    const auto held = env.acquire("k", {.ttl = 30s, .renewal = renewal::automatic});
    env.script->next(operation::extend, step::hold());
    env.advance_by_steps(11s, 500ms);
    BOOST_TEST(env.script->count(operation::extend) == 1U);
    auto closing = env.start(env.locker->shutdown());
    env.ready();
    BOOST_TEST(env.locker->stats().lost(lost_reason::shutting_down) == 1U);
    BOOST_TEST(env.locker->stats().renewal_errors == 0U);
    BOOST_TEST(env.script->deliver());
    static_cast<void>(closing.get(env.io()));
}

BOOST_AUTO_TEST_CASE(held_locks_have_all_fields)
{
    virtual_fixture env;
    auto plain = env.acquire("p", {.ttl = 0ms, .renewal = renewal::automatic});
    auto group = env.run(env.locker->acquire_all({"a", "b"}, {.ttl = 20s, .mode = lock_mode::shared}));
    const auto held = env.locker->held_locks();
    BOOST_TEST_REQUIRE(held.size() == 3U);
    for (const auto& each : held) {
        const bool in_group = each.key != "p";
        BOOST_TEST(each.group.empty() != in_group);
        BOOST_TEST((each.mode == (in_group ? lock_mode::shared : lock_mode::exclusive)));
        BOOST_TEST((each.ttl == (in_group ? 20s : 0s)));
        BOOST_TEST(each.valid_for.has_value() == in_group);
        BOOST_TEST(each.fence > 0U);
    }
    BOOST_TEST(held[1].group == held[2].group);
    // The timer runs for the locks of the group only, because another process may have extended them by the group's id.
    BOOST_TEST(!env.idle());
    group = {};
    env.ready();
    BOOST_TEST(env.idle());
}

BOOST_AUTO_TEST_CASE(waiting_acquires_have_all_fields)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        auto held = env.acquire("k");
        BOOST_TEST(env.locker->waiting_acquires().empty());
        const auto begin = lease_clock::now();
        auto first = env.start(env.locker->acquire("k"));
        auto group = env.start(env.locker->acquire_all({"a", "k"}));
        env.advance(2s);
        auto last = env.start(env.locker->acquire("k", {.mode = lock_mode::shared}));
        env.ready();
        const auto waiting = env.locker->waiting_acquires();
        BOOST_TEST_REQUIRE(waiting.size() == 3U);
        for (std::size_t n = 0; n < waiting.size(); ++n) {
            BOOST_TEST(waiting[n].key == "k");
            BOOST_TEST(waiting[n].place == n + 1);
            BOOST_TEST((waiting[n].mode == (n == 2 ? lock_mode::shared : lock_mode::exclusive)));
            // Real time passes, too.
            const auto began_after = std::chrono::floor<std::chrono::seconds>(waiting[n].since - begin);
            BOOST_TEST((began_after == (n == 2 ? 2s : 0s)));
        }
        held = {};
        held = first.get(env.io());
        const auto after_release = env.locker->waiting_acquires();
        BOOST_TEST_REQUIRE(after_release.size() == 2U);
        BOOST_TEST(after_release[0].place == 1U);
        BOOST_TEST((after_release[1].mode == lock_mode::shared));
        held = {};
        group.get(env.io()) = {};
        last.get(env.io()) = {};
        BOOST_TEST(env.locker->waiting_acquires().empty());
        env.wind_down();
    }
}

/// An attempt that is in flight does not wait, because the lock may be free.
BOOST_AUTO_TEST_CASE(single_attempt_is_no_waiting_acquire)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("busy");
    env.script->next(operation::create, step::hold());
    auto trying = env.start(env.locker->try_acquire("free"));
    auto waiting = env.start(env.locker->acquire("busy"));
    env.ready();
    const auto seen = env.locker->waiting_acquires();
    BOOST_TEST_REQUIRE(seen.size() == 1U);
    BOOST_TEST(seen[0].key == "busy");
    env.script->deliver();
    static_cast<void>(trying.get(env.io()));
    held = {};
    waiting.get(env.io()) = {};
    env.wind_down();
}

BOOST_AUTO_TEST_CASE(the_last_locker_closes_its_adapter_once)
{
    for (const bool by_shutdown : {false, true}) {
        virtual_fixture env(backend_kind::scripted);
        std::optional<colock::locker> second(env.backend());
        env.locker.reset();
        env.ready();
        BOOST_TEST(env.script->count(operation::close) == 0U);
        if (by_shutdown)
            env.run(second->shutdown());
        BOOST_TEST(env.script->count(operation::close) == (by_shutdown ? 1U : 0U));
        second.reset();
        env.ready();
        BOOST_TEST(env.script->count(operation::close) == 1U);
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(at_once)

BOOST_AUTO_TEST_CASE(a_release_that_fails_at_once_is_settled)
{
    virtual_fixture env(backend_kind::immediate);
    auto held = env.acquire("k");
    env.script->next(operation::release, step::fail(errc::unavailable));
    env.run(held.release());
    BOOST_TEST(env.stored().size() == 1U);
    BOOST_TEST(env.locker->stats().settling == 1U);
    BOOST_TEST(env.locker->stats().releases == 1U);
    held = {};
    env.wind_down();
    BOOST_TEST(env.locker->stats().settled == 1U);
    BOOST_TEST(env.locker->stats().unproven == 0U);
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(a_claim_in_doubt_is_abandoned)
{
    virtual_fixture env(backend_kind::immediate);
    env.script->next(operation::create, step::lose_reply());
    auto waiting = env.start(env.locker->acquire("k", {.retry = retry_policy::fixed(1s).jitter(0)}));
    env.advance(2s);
    auto held = waiting.get(env.io());
    held = {};
    env.ready();
    BOOST_TEST(env.script->count(operation::release) == 0U);
    BOOST_TEST(env.script->count(operation::abandon) == 1U);
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(grant_removes_the_deadline_from_the_timers)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind);
        auto first = env.acquire("k");
        auto waiting = env.start(env.locker->acquire("k", {.retry = retry_policy::fixed(1h).total_time(2h)}));
        env.ready();
        first = {};
        const auto held = waiting.get(env.io());
        BOOST_TEST(env.idle());
        const auto other = env.acquire("o", {.retry = retry_policy::fixed(1h).total_time(2h)});
        BOOST_TEST(env.idle());
    }
}

BOOST_AUTO_TEST_SUITE_END()
