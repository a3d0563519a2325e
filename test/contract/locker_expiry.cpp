// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "locker_helpers.hpp"

#include <utility>
#include <vector>

namespace colock::contract {

// The adapter cases with `capabilities::expires` test a grant whose TTL ends. These cases test the same with every
// locker: if the backend ends nothing by itself, the core does.

namespace {

/// Waits until the backend does not hold the key any more, whether the backend or the locker has ended the lock.
colock::lock acquire_after_expiry(fixture& env, const locker& by, std::string key, acquire_options options = {})
{
    auto waiting = testing::start(env.io(), by.acquire(std::move(key), std::move(options)));
    pass_slowly_until(env, [&] { return waiting.done(); });
    return waiting.get(env.io());
}

} // namespace

COLOCK_CONTRACT_CASE(locker, late_release_of_an_expired_lock_does_not_affect_the_next_holder)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto late = run_coro(env.io(), mine.acquire("k", {.ttl = env.short_ttl()}));
    auto next = acquire_after_expiry(env, other, "k");
    BOOST_TEST(!late.held());
    BOOST_TEST((failure_of<release_error>(env, late.release(on_failure::raise)) == errc::not_held));
    BOOST_TEST((failure_of<extend_error>(env, late.extend(1h)) == errc::not_held));
    BOOST_TEST(next.held());
    BOOST_TEST(!run_coro(env.io(), mine.try_acquire("k")));
    run_coro(env.io(), next.release(on_failure::raise));
    auto again = run_coro(env.io(), mine.acquire("k"));
    run_coro(env.io(), again.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, fences_grow_over_an_expiry, &capabilities::fence)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    const auto expired = run_coro(env.io(), mine.acquire("k", {.ttl = env.short_ttl()}));
    auto next = acquire_after_expiry(env, other, "k");
    BOOST_TEST(next.fence() > expired.fence());
    run_coro(env.io(), next.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, an_expired_lock_is_not_listed_for_long, &capabilities::list)
{
    const auto locker = env.make_locker();
    const auto expired = run_coro(env.io(), locker.acquire("expired", {.ttl = env.short_ttl()}));
    auto live = run_coro(env.io(), locker.acquire("live"));
    BOOST_TEST(run_coro(env.io(), locker.list({})).size() == 2U);
    pass_slowly_until(env, [&] { return !run_coro(env.io(), locker.is_locked("expired")); });
    // Each query estimates the server's clock. The estimate can be behind the clock by the round trip of one request,
    // so a lock that has just expired may still be listed.
    std::vector<lock_status> left;
    pass_slowly_until(env, [&] { return (left = run_coro(env.io(), locker.list({}))).size() == 1U; });
    BOOST_TEST(left[0].key == "live");
    run_coro(env.io(), live.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, shared_locks_expire_each_for_itself, &capabilities::shared)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    const auto brief = run_coro(env.io(), mine.acquire("k", {.ttl = env.short_ttl(), .mode = lock_mode::shared}));
    auto lasting = run_coro(env.io(), mine.acquire("k", {.mode = lock_mode::shared}));
    auto writer = testing::start(env.io(), other.acquire("k"));
    pass_slowly(env, env.short_ttl() * 11 / 10);
    BOOST_TEST(!brief.held());
    BOOST_TEST(lasting.held());
    BOOST_TEST(!writer.done());
    run_coro(env.io(), lasting.extend(env.short_ttl()));
    // A reader that stops renewing does not exclude a writer forever.
    pass_slowly_until(env, [&] { return writer.done(); });
    BOOST_TEST(!lasting.held());
    run_coro(env.io(), writer.get(env.io()).release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, a_semaphore_waiter_is_granted_after_a_holders_expiry, &capabilities::semaphore)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    const acquire_options place{.mode = lock_mode::shared, .max_holders = 2};
    auto brief_place = place;
    brief_place.ttl = env.short_ttl();
    const auto brief = run_coro(env.io(), mine.acquire("k", brief_place));
    auto lasting = run_coro(env.io(), mine.acquire("k", place));
    auto next = acquire_after_expiry(env, other, "k", place);
    BOOST_TEST(!brief.held());
    BOOST_TEST(lasting.held());
    run_coro(env.io(), lasting.release(on_failure::raise));
    run_coro(env.io(), next.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(
    locker, locks_of_a_dead_holder_are_purged_in_the_background, &capabilities::list, &capabilities::expires)
{
    // If locks can be shared, each key also has a reader that is alive. The purge removes the dead reader, and the lock
    // stays in the backend.
    std::vector<claim_ptr> living;
    const auto dead = env.another();
    for (int i = 0; i < 20; ++i) {
        const auto key = "k" + std::to_string(i);
        dead.grant(
            env.capabilities().shared ? env.shared(key, 0, env.short_ttl()) : env.exclusive(key, env.short_ttl()));
        if (env.capabilities().shared) {
            living.push_back(env.shared(key));
            env.grant(living.back());
        }
    }
    env.pass_time(env.short_ttl());
    const auto purging = env.make_locker({.purge = background_purge{.interval = env.short_ttl() / 5, .limit = 3}});
    // In virtual time each round trip needs a step.
    for (int i = 0; i < 40; ++i)
        env.pass_time(env.short_ttl() / 20);
    BOOST_TEST(run_coro(env.io(), purging.is_locked(locker::purge_key)));
    BOOST_TEST(env.purge().empty());
    for (const auto& each : living)
        env.release_held(each);
    BOOST_TEST(run_coro(env.io(), purging.shutdown()).clean());
}

COLOCK_CONTRACT_CASE(locker, expired_lock_is_removed_by_the_next_acquire, &capabilities::list, &capabilities::expires)
{
    env.another().grant(env.exclusive("k", env.short_ttl()));
    env.pass_time(env.short_ttl());
    auto held = run_coro(env.io(), env.make_locker().acquire("k"));
    BOOST_TEST(env.purge().empty());
    run_coro(env.io(), held.release(on_failure::raise));
}

} // namespace colock::contract
