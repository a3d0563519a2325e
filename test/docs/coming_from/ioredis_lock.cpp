// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis_fixture.hpp"

#include "../../integration/redis/server.hpp"

#include <boost/asio/cancel_after.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <future>

BOOST_AUTO_TEST_SUITE(from_ioredis_lock)

COLOCK_FIXTURE(memory_fixture, create_lock_becomes_options)
{
    colock::lock busy = co_await other.acquire("app:feature:lock");
    const colock::acquire_options options{.ttl = 20s, .retry = colock::retry_policy::fixed(100ms).times(3)};
    try {
        static_cast<void>(co_await locker.acquire("app:feature:lock", options));
        BOOST_ERROR("acquire did not give up");
    } catch (const colock::retry_error& failure) {
        BOOST_TEST(failure.attempts() == 4U);
    }
}

COLOCK_FIXTURE(memory_fixture, acquire)
{
    colock::lock lock = co_await locker.acquire("app:lock", {.ttl = 10s, .retry = colock::retry_policy::never()});
    BOOST_TEST(lock.held());
    BOOST_TEST((co_await code_of<colock::retry_error>(
                    other.acquire("app:lock", {.retry = colock::retry_policy::never()})) == errc::retry_exhausted));
}

COLOCK_FIXTURE(memory_fixture, with_a_callback)
{
    colock::error_code ended = errc::lost;
    locker.async_acquire("app:lock", [&](colock::error_code failed, colock::lock) { ended = failed; });
    co_await pass(1ms);
    BOOST_TEST(!ended);
}

BOOST_AUTO_TEST_CASE(with_a_future)
{
    asio::thread_pool pool(1);
    {
        colock::locker locker(colock::memory::make_adapter(pool.get_executor()));
        std::future<colock::lock> granted = locker.async_acquire("app:lock", asio::use_future);
        BOOST_TEST(granted.get().held());
    }
    pool.join();
}

COLOCK_FIXTURE(memory_fixture, release_reports_an_expiry)
{
    colock::lock lock = co_await locker.acquire("app:lock", {.ttl = 10s});
    co_await pass(20s);
    try {
        co_await lock.release(colock::on_failure::raise);
        BOOST_ERROR("release did not fail");
    } catch (const colock::release_error& failure) {
        BOOST_TEST((failure.code() == errc::not_held));
        BOOST_TEST(failure.key() == "app:lock");
    }
}

COLOCK_FIXTURE(memory_fixture, extend_reports_an_expiry)
{
    colock::lock lock = co_await locker.acquire("app:lock", {.ttl = 10s});
    co_await lock.extend(20s);
    co_await pass(15s);
    BOOST_TEST(lock.held());
    co_await pass(10s);
    BOOST_TEST((co_await code_of<colock::extend_error>(lock.extend(20s)) == errc::not_held));
}

COLOCK_FIXTURE(memory_fixture, held_locks_are_listed_and_released_by_key)
{
    colock::lock first = co_await locker.acquire("app:lock1");
    colock::lock second = co_await locker.acquire("app:lock2");
    colock::lock others = co_await other.acquire("app:lock3");
    std::vector<colock::held_lock> locks = locker.held_locks();
    BOOST_TEST((keys_of(locks) == std::vector<std::string>{"app:lock1", "app:lock2"}));
    for (const colock::held_lock& each : locks)
        co_await locker.break_lock(each.key);
    BOOST_TEST(!first.held());
    BOOST_TEST(!second.held());
    BOOST_TEST(locker.held_locks().empty());
    BOOST_TEST(others.held());
}

COLOCK_FIXTURE(memory_fixture, held_locks_are_released_at_the_end)
{
    colock::lock first = co_await locker.acquire("app:lock1");
    colock::lock others = co_await other.acquire("app:lock3");
    BOOST_TEST((co_await locker.shutdown()).clean());
    BOOST_TEST(!first.held());
    BOOST_TEST(!co_await other.is_locked("app:lock1"));
    BOOST_TEST(co_await others.is_locked());
}

COLOCK_FIXTURE(memory_fixture, a_handle_is_one_grant)
{
    colock::lock lock = co_await locker.acquire("app:lock");
    std::optional<colock::lock> again = co_await locker.try_acquire("app:lock");
    BOOST_TEST(!again);
    co_await lock.release();
    lock = co_await locker.acquire("app:lock");
    BOOST_TEST(lock.held());
}

COLOCK_FIXTURE(memory_fixture, an_id_is_a_random_token)
{
    colock::lock lock = co_await locker.acquire("app:lock");
    std::string id = lock.token().hex();
    BOOST_TEST(id.size() == 32U);
    co_await lock.release();
    lock = co_await locker.acquire("app:lock");
    BOOST_TEST(lock.token().hex() != id);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(on_redis, *is_served("COLOCK_TEST_REDIS"))

COLOCK_FIXTURE(redis_fixture, the_plain_layout_is_theirs)
{
    const auto plain =
        colock::redis::make_adapter(io.get_executor(), {.url = url, .layout = colock::redis::layout::plain});
    colock::testing::redis_shell them(static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
    colock::locker jobs(plain);

    colock::lock lock = co_await jobs.acquire(unique_name, {.ttl = 10s});
    BOOST_TEST(them({"GET", unique_name}) == lock.token().hex());
    BOOST_TEST(them({"SET", unique_name, "uuid", "PX", "10000", "NX"}) == "(nil)");
    co_await lock.release();

    BOOST_TEST(them({"SET", unique_name, "uuid", "PX", "10000", "NX"}) == "OK");
    BOOST_TEST(!co_await jobs.try_acquire(unique_name));
    BOOST_TEST(them({"GET", unique_name}) == "uuid");
    BOOST_TEST(them({"DEL", unique_name}) == "1");
    co_await jobs.shutdown();
}

BOOST_AUTO_TEST_SUITE_END()
