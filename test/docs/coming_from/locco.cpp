// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongodb_fixture.hpp"
#include "redis_fixture.hpp"

BOOST_AUTO_TEST_SUITE(from_locco)

COLOCK_FIXTURE(memory_fixture, a_locker_has_an_adapter_and_a_retry_policy)
{
    colock::locker jobs(backend, {.retry = colock::retry_policy::fixed(200ms).jitter(0).times(9)});
    colock::lock busy = co_await other.acquire("user:123");
    try {
        static_cast<void>(co_await jobs.acquire("user:123"));
        BOOST_ERROR("acquire did not give up");
    } catch (const colock::retry_error& failure) {
        BOOST_TEST(failure.attempts() == 10U);
        BOOST_TEST(failure.elapsed() >= 1800ms);
    }
}

COLOCK_FIXTURE(memory_fixture, options_can_be_stored_before_an_acquire)
{
    const colock::acquire_options patient{.ttl = 5s, .retry = colock::retry_policy::fixed(100ms).times(49)};
    colock::lock lock = co_await locker.acquire("orders:456", patient);
    BOOST_TEST(lock.held());
    BOOST_TEST((lock.ttl() == 5s));
}

COLOCK_FIXTURE(memory_fixture, acquire_and_release)
{
    colock::lock lock = co_await locker.acquire("user:123", {.ttl = 3s});
    BOOST_TEST(co_await other.is_locked("user:123"));
    co_await lock.release();
    BOOST_TEST(!co_await other.is_locked("user:123"));
}

COLOCK_FIXTURE(memory_fixture, a_body_is_given_the_lock)
{
    int result = co_await locker.with_lock("user:123", {.ttl = 3s}, [](colock::lock& lock) -> asio::awaitable<int> {
        co_await lock.extend(2s);
        co_return 7;
    });
    BOOST_TEST(result == 7);
    BOOST_TEST(!co_await other.is_locked("user:123"));
    try {
        co_await locker.with_lock("user:123", [] { throw std::out_of_range("in the critical section"); });
        BOOST_ERROR("with_lock did not throw");
    } catch (const std::out_of_range&) {
    }
    BOOST_TEST(!co_await other.is_locked("user:123"));
}

COLOCK_FIXTURE(memory_fixture, a_quiet_release_hides_an_expiry)
{
    colock::lock lock = co_await locker.acquire("user:123", {.ttl = 3s});
    co_await pass(4s);
    colock::lock next = co_await other.acquire("user:123");
    co_await lock.release();
    BOOST_TEST(co_await next.is_locked());
}

COLOCK_FIXTURE(memory_fixture, a_release_can_raise)
{
    colock::lock lock = co_await locker.acquire("user:123", {.ttl = 3s});
    co_await pass(4s);
    try {
        co_await lock.release(colock::on_failure::raise);
        BOOST_ERROR("release did not fail");
    } catch (const colock::release_error& failure) {
        BOOST_TEST((failure.code() == errc::not_held));
    }
}

COLOCK_FIXTURE(memory_fixture, extend_counts_from_now)
{
    colock::lock lock = co_await locker.acquire("user:123", {.ttl = 3s});
    co_await pass(2s);
    co_await lock.extend(5s);
    co_await pass(4s);
    BOOST_TEST(lock.held());
    co_await pass(1s);
    BOOST_TEST(!lock.held());
    BOOST_TEST((co_await code_of<colock::extend_error>(lock.extend(5s)) == errc::not_held));
    BOOST_TEST(!co_await other.is_locked("user:123"));
}

COLOCK_FIXTURE(memory_fixture, is_locked_asks_the_backend)
{
    colock::lock lock = co_await locker.acquire("user:123", {.ttl = 3s});
    bool still = co_await lock.is_locked();
    BOOST_TEST(still);
    co_await other.break_lock("user:123");
    BOOST_TEST(!co_await lock.is_locked());
}

COLOCK_FIXTURE(memory_fixture, a_retry_policy_of_one_call)
{
    colock::lock busy = co_await other.acquire("key", {.ttl = 4s});
    colock::lock lock =
        co_await locker.acquire("key", {.ttl = 3s, .retry = colock::retry_policy::fixed(100ms).times(49)});
    BOOST_TEST(lock.held());
    BOOST_TEST(!locker.defaults().retry.finite());
}

COLOCK_FIXTURE(memory_fixture, the_policy_is_read_from_the_locker)
{
    colock::locker jobs(backend, {.retry = colock::retry_policy::fixed(200ms).times(9)});
    const colock::retry_policy policy = jobs.defaults().retry;
    BOOST_TEST(policy.max_retries().value() == 9U);
    co_return;
}

COLOCK_FIXTURE(memory_fixture, properties)
{
    colock::lock lock = co_await locker.acquire("key", {.ttl = 3s});
    BOOST_TEST(lock.key() == "key");
    BOOST_TEST((lock.ttl() == 3s));
    std::string unique_value = lock.token().hex();
    BOOST_TEST(unique_value.size() == 32U);
    std::uint64_t fence = lock.fence();
    co_await lock.release();
    lock = co_await other.acquire("key");
    BOOST_TEST(lock.fence() > fence);
    BOOST_TEST(lock.token().hex() != unique_value);
}

COLOCK_FIXTURE(memory_fixture, a_total_time)
{
    colock::lock busy = co_await other.acquire("key");
    const auto policy = colock::retry_policy::fixed(200ms).times(99).total_time(1s);
    BOOST_TEST(
        (co_await code_of<colock::retry_error>(locker.acquire("key", {.retry = policy})) == errc::retry_exhausted));
    BOOST_TEST((locker.stats().waited_longest < 2s));
}

COLOCK_FIXTURE(memory_fixture, a_delay_function)
{
    colock::lock busy = co_await other.acquire("key");
    std::vector<colock::retry_attempt> seen;
    const auto policy =
        colock::retry_policy::custom([&](const colock::retry_attempt& attempt) -> colock::retry_decision {
            seen.push_back(attempt);
            if (attempt.number == 3)
                return colock::retry_stop;
            return std::min(50ms * (1 << attempt.number), 5000ms);
        });
    BOOST_TEST(
        (co_await code_of<colock::retry_error>(locker.acquire("key", {.retry = policy})) == errc::retry_exhausted));
    BOOST_TEST_REQUIRE(seen.size() == 4U);
    BOOST_TEST((seen[0].previous_delay == 0ms));
    BOOST_TEST((seen[3].previous_delay == 200ms));
    BOOST_TEST((seen[3].start == seen[0].start));
}

BOOST_AUTO_TEST_CASE(a_held_lock_does_not_keep_the_program_running)
{
    asio::io_context io;
    colock::locker locker(colock::memory::make_adapter(io.get_executor()));
    colock::lock held = colock::testing::run_coro(io, locker.acquire("resource:1"));
    io.run();
    BOOST_TEST(held.held());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(on_redis, *is_served("COLOCK_TEST_REDIS"))

COLOCK_FIXTURE(redis_fixture, adapter_is_made_from_a_url)
{
    const auto adapter = colock::redis::make_adapter(io.get_executor(), {.url = url, .prefix = unique_name + ":"});
    colock::locker locker(adapter);
    colock::lock lock = co_await locker.acquire("user:123", {.ttl = 3s});
    BOOST_TEST(co_await lock.is_locked());
    co_await lock.release(colock::on_failure::raise);
    co_await locker.shutdown();
}

COLOCK_FIXTURE(redis_fixture, a_lock_that_has_expired_is_not_extended)
{
    co_await check_lost_lock_is_not_requested_again(locker, other);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(on_mongodb, *is_served("COLOCK_TEST_MONGODB"))

COLOCK_FIXTURE(mongodb_fixture, adapter_is_made_from_a_url)
{
    const auto adapter =
        colock::mongo::make_adapter(io.get_executor(), {.url = url, .database = "colock", .collection = unique_name});
    colock::locker locker(adapter);
    co_await colock::mongo::create_indexes(adapter);
    colock::lock lock = co_await locker.acquire("user:123", {.ttl = 3s});
    BOOST_TEST(co_await lock.is_locked());
    co_await lock.release(colock::on_failure::raise);
    co_await locker.shutdown();
}

COLOCK_FIXTURE(mongodb_fixture, a_lock_that_has_expired_is_not_extended)
{
    co_await check_lost_lock_is_not_requested_again(locker, other);
}

BOOST_AUTO_TEST_SUITE_END()
