// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper_fixture.hpp"

#include "support/notes.hpp"

BOOST_AUTO_TEST_SUITE(from_zookeeper_node_shared_lock)

COLOCK_FIXTURE(memory_fixture, a_time_to_wait_at_most)
{
    colock::lock busy = co_await other.acquire("resource1", {.ttl = 0ms});
    const auto policy = colock::retry_policy::exponential(100ms, 2.0, 10s).total_time(5s);
    BOOST_TEST((co_await code_of<colock::retry_error>(locker.acquire("resource1", {.ttl = 0ms, .retry = policy})) ==
                errc::retry_exhausted));
    BOOST_TEST((locker.stats().waited_longest < 6s));
}

COLOCK_FIXTURE(memory_fixture, acquire_without_limits_waits_and_holds_forever)
{
    colock::lock busy = co_await other.acquire("resource1", {.ttl = 10min});
    colock::lock lock = co_await locker.acquire("resource1", {.ttl = 0ms});
    BOOST_TEST((locker.stats().waited_longest > 9min));
    co_await pass(10min);
    BOOST_TEST(lock.held());
}

COLOCK_FIXTURE(memory_fixture, one_waiter_wakes_at_each_release)
{
    colock::lock lock = co_await other.acquire("resource1", {.ttl = 0ms});
    const auto granted = std::make_shared<std::vector<colock::lock>>();
    for (int i = 0; i < 10; ++i)
        locker.async_acquire("resource1", {.ttl = 0ms},
            [granted](colock::error_code, colock::lock each) { granted->push_back(std::move(each)); });
    co_await pass(1s);
    co_await lock.release();
    co_await pass(1s);
    BOOST_TEST(granted->size() == 1U);
    BOOST_TEST(locker.stats().waiting == 9U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(on_zookeeper, *is_served("COLOCK_TEST_ZOOKEEPER"))

COLOCK_FIXTURE(zookeeper_fixture, a_service_for_a_resource_name)
{
    // url: zookeeper://localhost:2181/my_global_resource
    const auto adapter = colock::zookeeper::make_adapter(io.get_executor(), {.url = url});
    colock::locker locks(adapter);
    colock::lock lock = co_await locks.acquire("resource1", {.ttl = 0ms});
    BOOST_TEST(co_await other.is_locked("resource1"));
    co_await lock.release();
    BOOST_TEST(!co_await other.is_locked("resource1"));
}

COLOCK_FIXTURE(zookeeper_fixture, ready_is_reported_and_need_not_be_awaited)
{
    const auto listener = std::make_shared<colock::testing::notes>();
    colock::locker locks(make(), {.observer = listener});
    BOOST_TEST(listener->readies == 0);
    colock::lock lock = co_await locks.acquire("resource1");
    BOOST_TEST(listener->readies == 1);
}

COLOCK_FIXTURE(zookeeper_fixture, waiters_of_all_processes_share_one_queue)
{
    colock::lock first = co_await locker.acquire("resource1", {.ttl = 0ms});
    colock::locker third(make());
    std::string order;
    const auto wait = [&](colock::locker& by, char name) -> asio::awaitable<void> {
        by.async_acquire(
            "resource1", {.ttl = 0ms}, [&order, name](colock::error_code, colock::lock) { order += name; });
        // The claim is in the queue as soon as its locker has received the answer that the key is busy.
        while (by.stats().busy == 0)
            co_await pass(1ms);
    };
    co_await wait(third, 'a');
    co_await wait(other, 'b');
    co_await first.release();
    while (order.size() < 2)
        co_await pass(1ms);
    BOOST_TEST(order == "ab");
}

COLOCK_FIXTURE(zookeeper_fixture, a_status_has_no_remaining_time)
{
    colock::lock lock = co_await locker.acquire("resource1", {.ttl = 10s, .owner = "john"});
    std::vector<colock::lock_status> found = co_await other.list({.owner = "john"});
    BOOST_TEST_REQUIRE(found.size() == 1U);
    BOOST_TEST(found.front().key == "resource1");
    BOOST_TEST(!found.front().remaining);
    BOOST_TEST((lock.expires_at() - colock::lease_clock::now() < 10s));
}

COLOCK_FIXTURE(zookeeper_fixture, a_lock_cannot_be_moved)
{
    colock::lock lock = co_await locker.acquire("resource1");
    BOOST_TEST((co_await code_of<colock::validation_error>(lock.detach()) == errc::unsupported));
    BOOST_TEST(lock.held());
    co_await lock.release();
    colock::lock next = co_await other.acquire("resource1");
    BOOST_TEST(next.fence() > lock.fence());
}

COLOCK_FIXTURE(zookeeper_fixture, a_lock_that_has_expired_is_not_extended)
{
    co_await check_lost_lock_is_not_requested_again(locker, other);
}

COLOCK_FIXTURE(zookeeper_fixture, a_group_is_extended_through_its_own_handle)
{
    colock::lock_group group = locker.group();
    co_await group.acquire("resource1", {.ttl = 10s});
    std::vector<colock::lock_report> renewed = co_await group.extend(60s);
    BOOST_TEST_REQUIRE(renewed.size() == 1U);
    BOOST_TEST(!renewed.front().status);
    BOOST_TEST((co_await code_of<colock::validation_error>(other.group(group.id()).extend(60s)) == errc::unsupported));
    BOOST_TEST((co_await other.group(group.id()).release()).size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
