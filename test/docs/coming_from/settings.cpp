// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Defaults, differences and retries of all libraries.

#include "fixture.hpp"

BOOST_AUTO_TEST_SUITE(defaults)

COLOCK_FIXTURE(memory_fixture, ours)
{
    const colock::locker_options ours = locker.defaults();
    BOOST_TEST((ours.ttl == 30s));
    BOOST_TEST(!ours.retry.finite());
    BOOST_TEST((ours.retry.delay_after({}) == 2s));
    BOOST_TEST(!ours.owner.empty());
    BOOST_TEST(!ours.host.empty());
    colock::lock lock = co_await locker.acquire("k");
    BOOST_TEST((lock.ttl() == 30s));
    co_await pass(31s);
    // A lock that `acquire` returned is renewed only on request.
    BOOST_TEST(!lock.held());
}

COLOCK_FIXTURE(memory_fixture, of_ioredis_lock)
{
    colock::locker locks(backend, {.ttl = 10s, .retry = colock::retry_policy::never()});
    colock::lock lock = co_await locks.acquire("k");
    BOOST_TEST((lock.ttl() == 10s));
    BOOST_TEST((co_await code_of<colock::retry_error>(locks.acquire("k")) == errc::retry_exhausted));
    BOOST_TEST(locks.stats().attempts == 2U);
}

COLOCK_FIXTURE(memory_fixture, of_ioredis_lock_6)
{
    colock::locker locks(backend, {.ttl = 10s, .retry = colock::retry_policy::fixed(55ms).jitter(0.09).times(6)});
    colock::lock lock = co_await locks.acquire("k");
    BOOST_TEST((co_await code_of<colock::retry_error>(locks.acquire("k")) == errc::retry_exhausted));
    BOOST_TEST(locks.stats().attempts == 8U);
}

COLOCK_FIXTURE(memory_fixture, of_nebulex_locks)
{
    colock::locker locks(backend, {.ttl = 30s, .retry = colock::retry_policy::fixed(10ms).jitter(0.2).times(3)});
    colock::lock lock = co_await locks.acquire("k");
    BOOST_TEST((lock.ttl() == 30s));
    BOOST_TEST((co_await code_of<colock::retry_error>(locks.acquire("k")) == errc::retry_exhausted));
    BOOST_TEST(locks.stats().attempts == 5U);
}

COLOCK_FIXTURE(memory_fixture, of_mongo_lock)
{
    colock::locker locks(backend, {.ttl = 0ms, .retry = colock::retry_policy::never()});
    colock::lock lock = co_await locks.acquire("k");
    BOOST_TEST((lock.expires_at() == colock::lease_clock::time_point::max()));
    BOOST_TEST((co_await code_of<colock::retry_error>(locks.acquire("k")) == errc::retry_exhausted));
}

COLOCK_FIXTURE(memory_fixture, of_zookeeper_node_shared_lock)
{
    colock::locker locks(backend, {.ttl = 0ms, .retry = colock::retry_policy::forever()});
    colock::lock lock = co_await locks.acquire("k");
    BOOST_TEST((lock.expires_at() == colock::lease_clock::time_point::max()));
    BOOST_TEST(!locks.defaults().retry.finite());
}

COLOCK_FIXTURE(memory_fixture, of_locco)
{
    // locco has no default settings: the key, the TTL and the retry settings have to be given.
    colock::lock busy = co_await other.acquire("k");
    colock::lock lock =
        co_await locker.acquire("k", {.ttl = 3s, .retry = colock::retry_policy::fixed(200ms).times(999)});
    BOOST_TEST((lock.ttl() == 3s));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(differences)

COLOCK_FIXTURE(memory_fixture, ttl_is_at_least_100_ms)
{
    BOOST_TEST((co_await code_of<colock::validation_error>(locker.acquire("k", {.ttl = 99ms})) == errc::invalid_ttl));
    colock::lock lock = co_await locker.acquire("k", {.ttl = 100ms});
    BOOST_TEST(lock.held());
}

COLOCK_FIXTURE(memory_fixture, max_holders_of_zero_is_no_limit)
{
    const colock::acquire_options any{.mode = colock::lock_mode::shared, .max_holders = 0};
    colock::lock first = co_await locker.acquire("k", any);
    colock::lock second = co_await locker.acquire("k", any);
    BOOST_TEST(second.held());
}

COLOCK_FIXTURE(memory_fixture, not_reentrant)
{
    colock::lock lock = co_await locker.acquire("k", {.ttl = 5s});
    colock::lock again = co_await locker.acquire("k");
    BOOST_TEST(!lock.held());
    BOOST_TEST((locker.stats().waited_longest > 4s));
}

COLOCK_FIXTURE(memory_fixture, acquire_without_a_policy_waits_forever)
{
    colock::lock busy = co_await other.acquire("k", {.ttl = 20min});
    colock::lock lock = co_await locker.acquire("k");
    BOOST_TEST((locker.stats().waited_longest > 19min));
}

COLOCK_FIXTURE(memory_fixture, destroyed_handle_releases_its_lock)
{
    {
        colock::lock lock = co_await locker.acquire("k", {.ttl = 0ms});
    }
    colock::lock next = co_await other.acquire("k");
    BOOST_TEST((other.stats().waited_longest < 1s));
}

COLOCK_FIXTURE(memory_fixture, times_counts_retries)
{
    colock::lock busy = co_await other.acquire("k");
    const auto policy = colock::retry_policy::fixed(10ms).times(3);
    BOOST_TEST(
        (co_await code_of<colock::retry_error>(locker.acquire("k", {.retry = policy})) == errc::retry_exhausted));
    BOOST_TEST(locker.stats().attempts == 4U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(retries)

using colock::retry_attempt;
using colock::retry_decision;
using colock::retry_policy;

/// Returns the delays after the first attempts, without jitter, in milliseconds; -1 if the policy ends.
static std::vector<int> delays_of(const retry_policy& policy, std::size_t count)
{
    std::vector<int> delays;
    retry_attempt attempt;
    for (; attempt.number < count; ++attempt.number) {
        const auto delay = policy.delay_after(attempt);
        delays.push_back(delay ? static_cast<int>(*delay / 1ms) : -1);
        attempt.previous_delay = delay.value_or(0ms);
    }
    return delays;
}
using ms = std::vector<int>;

BOOST_AUTO_TEST_CASE(fixed)
{
    const auto policy = retry_policy::fixed(200ms).times(2);
    BOOST_TEST((delays_of(policy, 3) == ms{200, 200, -1}));
    BOOST_TEST(policy.jitter() == 0.2);
}

BOOST_AUTO_TEST_CASE(without_jitter)
{
    const auto policy = retry_policy::fixed(200ms).jitter(0);
    BOOST_TEST(policy.jitter() == 0.0);
}

BOOST_AUTO_TEST_CASE(linear)
{
    const auto policy = retry_policy::linear(10ms, 50ms);
    BOOST_TEST((delays_of(policy, 4) == ms{10, 60, 110, 160}));
    BOOST_TEST(policy.jitter() == 0.0);
}

BOOST_AUTO_TEST_CASE(exponential)
{
    const auto policy = retry_policy::exponential(100ms, 2.0, 5s);
    BOOST_TEST((delays_of(policy, 8) == ms{100, 200, 400, 800, 1600, 3200, 5000, 5000}));
}

BOOST_AUTO_TEST_CASE(immediate_first_retry)
{
    const auto policy =
        retry_policy::custom([](const retry_attempt& attempt) -> retry_decision { return attempt.number * 100ms; });
    BOOST_TEST((delays_of(policy, 3) == ms{0, 100, 200}));
}

BOOST_AUTO_TEST_CASE(delay_computed_from_the_previous_delay)
{
    const auto policy = retry_policy::custom(
        [](const retry_attempt& attempt) -> retry_decision { return attempt.previous_delay * 2 + 1ms; });
    BOOST_TEST((delays_of(policy, 4) == ms{1, 3, 7, 15}));
}

BOOST_AUTO_TEST_CASE(no_retry)
{
    const auto policy = retry_policy::never();
    BOOST_TEST((delays_of(policy, 1) == ms{-1}));
}

BOOST_AUTO_TEST_CASE(retries_forever)
{
    const auto policy = retry_policy::fixed(10ms);
    BOOST_TEST(!policy.finite());
    BOOST_TEST((delays_of(policy, 2) == ms{10, 10}));
}

BOOST_AUTO_TEST_CASE(a_total_time)
{
    const auto policy = retry_policy::fixed(200ms).times(10).total_time(1s);
    BOOST_TEST((policy.max_time() == 1s));
}

BOOST_AUTO_TEST_CASE(invalid_settings_have_a_problem)
{
    BOOST_TEST(!retry_policy::fixed(-1ms).problem().empty());
    BOOST_TEST(retry_policy::fixed(0ms).problem().empty());
}

BOOST_AUTO_TEST_SUITE_END()
