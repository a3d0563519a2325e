// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// How long a lease lasts after changes of its TTL, when a body stops, and whether a late grant is kept.
#include "lease_ends.hpp"
#include "support/set_capabilities.hpp"
#include "support/virtual_fixture.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>

#include <chrono>
#include <optional>
#include <stdexcept>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(margins)

BOOST_AUTO_TEST_CASE(a_body_may_shorten_its_lease)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->always(operation::extend, step::pass().delay(500ms));
    auto body = env.start(env.locker->with_lock("k", {.ttl = 1h}, [](lock& held) -> asio::awaitable<bool> {
        // The default margin for an hour is a second, which would be all of this lease.
        co_await held.extend(1s);
        co_return held.held() && held.ttl() == 1s;
    }));
    env.ready();
    env.advance(600ms);
    BOOST_TEST(body.get(env.io()));
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(lock_is_released_after_max_hold)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted}) {
        virtual_fixture env(kind, {.max_hold = 1min});
        auto manual = env.acquire("manual", {.ttl = 1h});
        auto renewed = env.acquire("renewed", {.ttl = 30s, .renewal = renewal::automatic});
        auto endless = env.acquire("endless", {.ttl = 0ms});
        BOOST_TEST((endless.expires_at() == lease_clock::time_point::max()));
        env.advance_by_steps(61s, 5s);
        BOOST_TEST(!manual.held());
        BOOST_TEST(!renewed.held());
        BOOST_TEST(env.locker->stats().lost(lost_reason::expired) == 2U);
        // A lock without a TTL is held until it is released.
        BOOST_TEST(endless.held());
        BOOST_TEST(env.stored().size() == 1U);
        endless = {};
        env.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(renewal_after_a_failed_extension_comes_before_the_shorter_lease_ends)
{
    virtual_fixture env(backend_kind::scripted);
    auto held = env.acquire("k", {.ttl = 1h, .renewal = renewal::automatic});
    env.script->next(operation::extend, step::fail(errc::unavailable));
    COLOCK_THROWS(extend_error, errc::unavailable, env.run(held.extend(500ms)));
    env.advance(60ms);
    BOOST_TEST(env.script->count(operation::extend) == 2U);
    env.advance(30s);
    BOOST_TEST(held.held());
    held = {};
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(earlier_expiry_is_noticed_while_an_answer_is_in_flight)
{
    virtual_fixture env(backend_kind::scripted);
    disable(env, {&capabilities::events, &capabilities::fifo});
    colock::locker by(env.script);
    auto held = env.run(by.acquire("k", {.ttl = 6h, .mode = lock_mode::shared}));
    env.script->next(operation::create, step::busy(6h).delay(20s));
    auto waiting = env.start(by.acquire("k", {.retry = retry_policy::fixed(24h)}));
    env.ready();
    // The answer in flight says that the key is busy for six hours, and the lease is shortened meanwhile.
    env.run(held.extend(1min));
    env.advance(21s);
    BOOST_TEST(!waiting.done());
    env.advance(1min);
    BOOST_TEST_REQUIRE(waiting.done());
    static_cast<void>(waiting.get(env.io()));
    held = {};
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(a_single_attempt_that_is_granted_too_late_is_an_error)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->next(operation::create, step::pass().after([&] { env.clock.skip(59s); }));
    COLOCK_THROWS(create_error, errc::unavailable, env.run(env.locker->try_acquire("k", {.ttl = 1min})));
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(nothing_begins_after_a_cancellation_that_was_only_recorded)
{
    const auto check = [](backend_kind kind, const auto& call) {
        virtual_fixture env(kind);
        asio::cancellation_signal cancel;
        error_code result;
        const auto caller = [&]() -> asio::awaitable<void> {
            co_await asio::this_coro::throw_if_cancelled(false);
            cancel.emit(asio::cancellation_type::terminal);
            try {
                static_cast<void>(co_await call(*env.locker));
            } catch (const boost::system::system_error& stopped) {
                result = stopped.code();
            }
        };
        asio::co_spawn(env.io(), caller(), asio::bind_cancellation_slot(cancel.slot(), [](std::exception_ptr) {}));
        env.ready();
        BOOST_TEST((result == asio::error::operation_aborted));
        if (kind == backend_kind::scripted)
            BOOST_TEST(env.script->count(operation::create) == 0U);
        env.check_clean();
    };
    check(backend_kind::scripted, [](const locker& by) { return by.acquire("k"); });
    check(backend_kind::scripted, [](const locker& by) { return by.try_acquire("k"); });
    // A backend in memory grants the lock at once.
    for (const auto kind : {backend_kind::scripted, backend_kind::memory}) {
        check(
            kind, [](const locker& by) { return by.with_lock("k", [] { BOOST_TEST(false, "the body has begun"); }); });
    }
}

BOOST_AUTO_TEST_CASE(configured_minimum_validity_decides_about_a_late_grant)
{
    // By default, a tenth of the TTL must be left when the grant arrives.
    struct row
    {
        std::optional<std::chrono::milliseconds> min_validity;
        std::chrono::milliseconds late;
        bool granted;
    };
    for (const auto& [min_validity, late_by, granted] : {row{{}, 20s, true}, row{{}, 27s, false}, row{10s, 18s, true},
             row{10s, 20s, false}, row{0ms, 28s, true}, row{0ms, 31s, false}})
    {
        virtual_fixture env(backend_kind::scripted, {.minimum_validity = min_validity});
        check_late_grant(env, late_by, granted);
    }
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
        virtual_fixture env(backend_kind::memory, {.stop_margin = margin});
        const auto start = lease_clock::now();
        lease_clock::time_point stopped;
        auto working = env.start(
            env.locker->with_lock("k", {.ttl = ttl, .renewal = renewal::manual}, [&stopped]() -> asio::awaitable<void> {
                try {
                    co_await sleep_for(1h);
                } catch (const boost::system::system_error&) {
                    stopped = lease_clock::now();
                }
            }));
        env.advance_by_steps(31s, 50ms);
        BOOST_TEST_REQUIRE(working.done());
        COLOCK_THROWS(lost_error, errc::lost, working.get(env.io()));
        BOOST_TEST(about(stopped, start + stops));
        env.wind_down_and_check();
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(group_ends)

BOOST_AUTO_TEST_CASE(release_of_a_group_does_not_extend_its_total_time)
{
    virtual_fixture env(backend_kind::scripted);
    disable_create_all(env, true, {.operation_timeout = 20s});
    colock::locker other(env.memory);
    auto busy = env.run(other.acquire("z", {.ttl = 0ms}));
    env.script->always(operation::release, step::hold());
    const acquire_options options{.retry = retry_policy::fixed(1s).total_time(10s)};
    auto group = env.start(env.locker->acquire_all({"a", "b", "c", "z"}, options));
    env.ready();
    env.advance(11s);
    BOOST_TEST_REQUIRE(group.done());
    BOOST_CHECK_THROW(static_cast<void>(group.get(env.io())), error);
    env.script->reset();
    while (env.script->deliver())
        env.ready();
    busy = {};
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(a_custom_retry_that_throws_leaves_a_group_holding_nothing)
{
    virtual_fixture env(backend_kind::scripted);
    disable_create_all(env);
    colock::locker other(env.memory);
    auto busy = env.run(other.acquire("z", {.ttl = 0ms}));
    env.script->always(operation::release, step::pass().delay(1s));
    env.script->always(operation::abandon, step::pass().delay(1s));
    const auto policy =
        retry_policy::custom([](const retry_attempt&) -> retry_decision { throw std::runtime_error("no"); });
    auto group = env.start(env.locker->acquire_all({"a", "b", "z"}, {.retry = policy}));
    env.ready();
    // The group does not wait for the releases.
    BOOST_TEST_REQUIRE(group.done());
    BOOST_CHECK_THROW(static_cast<void>(group.get(env.io())), std::runtime_error);
    env.advance(2s);
    BOOST_TEST(env.stored().size() == 1U);
    env.script->reset();
    busy = {};
    env.check_clean();
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(after_the_context)

BOOST_AUTO_TEST_CASE(operations_of_a_lock_end_on_another_context)
{
    for (const auto kind : {backend_kind::memory, backend_kind::scripted, backend_kind::other_context}) {
        virtual_fixture env(kind);
        auto held = env.acquire("k");
        asio::io_context living;
        env.context.reset();
        BOOST_TEST((run_coro(living, held.lost()) == lost_reason::shutting_down));
        if (kind != backend_kind::memory) {
            COLOCK_THROWS(extend_error, errc::shutting_down, run_coro(living, held.extend(1min)));
            COLOCK_THROWS(error, errc::shutting_down, run_coro(living, held.is_locked()));
        }
        run_coro(living, held.release());
    }
}

BOOST_AUTO_TEST_SUITE_END()
