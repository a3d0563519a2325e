// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Tests of a server whose clock is set while a lock is held. For a lease this is equivalent to a new primary whose
// clock is ahead or behind.

#include "server.hpp"
#include "support/movable_clock.hpp"
#include "support/run.hpp"

#include <colock/locker.hpp>
#include <colock/mongo/adapter.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <optional>

namespace colock::testing {

using namespace std::chrono_literals;

namespace {

constexpr std::chrono::milliseconds ttl = 3s;

/// Returns how long before the expiry of the first lease a second holder was granted the lock. Negative: the leases did
/// not overlap.
lease_clock::duration overlap_after_step(std::chrono::milliseconds ahead, std::chrono::milliseconds lead)
{
    movable_clock clock;
    mongodb_server server({}, clock.environment());
    const mongo::options options{.url = mongodb_url(server.port()), .max_clock_lead = lead};
    asio::io_context io;
    locker one(mongo::make_adapter(io.get_executor(), options));
    locker other(mongo::make_adapter(io.get_executor(), options));
    // The first use takes longer than later ones, and must not use up the ttl.
    for (auto* const each : {&one, &other})
        run_coro(io, each->try_acquire("unused")).reset();
    const auto first = run_coro(io, one.acquire("k", {.ttl = ttl}));
    clock.set_ahead(ahead);
    std::optional<lock> second;
    while (!second)
        second = run_coro(io, other.try_acquire("k"));
    const auto overlap = first.expires_at() - lease_clock::now();
    second.reset();
    run_coro(io, one.shutdown(5s));
    run_coro(io, other.shutdown(5s));
    return overlap;
}

} // namespace

BOOST_AUTO_TEST_SUITE(mongo_clocks, *boost::unit_test::precondition(has_mongodb) *
                                        boost::unit_test::precondition(not_ferretdb("clock that a test can move")))

BOOST_AUTO_TEST_CASE(a_clock_that_is_behind_gives_the_lock_to_no_second_holder)
{
    BOOST_TEST((overlap_after_step(-500ms, 0ms) < 0s));
}

BOOST_AUTO_TEST_CASE(a_clock_that_is_ahead_gives_the_lock_to_a_second_holder_only_beyond_the_lead)
{
    BOOST_TEST((overlap_after_step(500ms, 500ms) < 0s));
    // No client can prevent this overlap.
    BOOST_TEST((overlap_after_step(2000ms, 0ms) > 0s));
    BOOST_TEST((overlap_after_step(2500ms, 500ms) > 0s));
}

BOOST_AUTO_TEST_CASE(waiter_is_granted_soon_after_the_clock_has_passed_a_lease)
{
    for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
        movable_clock clock;
        mongodb_server server({}, clock.environment());
        asio::io_context io;
        const locker one(mongo::make_adapter(io.get_executor(), {.url = mongodb_url(server.port())}));
        const locker other(mongo::make_adapter(io.get_executor(), {.url = mongodb_url(server.port())}));
        const auto held = run_coro(io, one.acquire("k", {.ttl = 10min}));
        const auto waiting = start(io, other.acquire("k", {.mode = mode, .retry = retry_policy::fixed(1h)}));
        run_until(io, [&] { return other.stats().busy > 0; });
        clock.set_ahead(1h);
        const auto ahead = lease_clock::now();
        run_until(io, [&] { return waiting.done() || lease_clock::now() - ahead > 25s; });
        BOOST_TEST(waiting.done());
        run_coro(io, other.shutdown(5s));
        run_coro(io, one.shutdown(5s));
    }
}

BOOST_AUTO_TEST_CASE(leases_are_shortened_by_default)
{
    asio::io_context io;
    const auto backend = mongo::make_adapter(io.get_executor());
    BOOST_TEST((backend->max_clock_lead(30s) == 250ms));
    BOOST_TEST((backend->max_clock_lead(1s) == 100ms));
    BOOST_TEST((backend->max_clock_lead(100ms) == 10ms));
    const auto wary = mongo::make_adapter(io.get_executor(), {.max_clock_lead = 7s});
    BOOST_TEST((wary->max_clock_lead(30s) == 7s));
    BOOST_CHECK_EXCEPTION(locker(wary, {.ttl = 27'999ms}), validation_error,
        [](const auto& refused) { return refused.code() == errc::invalid_ttl; });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
