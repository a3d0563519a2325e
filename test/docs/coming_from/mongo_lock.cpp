// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "mongodb_fixture.hpp"
#include "redis_fixture.hpp"
#include "zookeeper_fixture.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/cancel_after.hpp>

BOOST_AUTO_TEST_SUITE(from_mongo_lock)

COLOCK_FIXTURE(memory_fixture, an_exclusive_lock_is_tried_once)
{
    std::optional<colock::lock> lock = co_await locker.try_acquire("resource1", {.ttl = 0ms});
    BOOST_TEST(lock.has_value());
    BOOST_TEST(!co_await other.try_acquire("resource1"));
    BOOST_TEST((lock->expires_at() == colock::lease_clock::time_point::max()));
}

COLOCK_FIXTURE(memory_fixture, shared_locks)
{
    colock::lock first = co_await locker.acquire("resource2", {.mode = colock::lock_mode::shared});
    colock::lock second = co_await other.acquire("resource2", {.mode = colock::lock_mode::shared});
    BOOST_TEST(!co_await other.try_acquire("resource2"));
    BOOST_TEST(second.held());
}

COLOCK_FIXTURE(memory_fixture, a_limited_number_of_shared_locks)
{
    const colock::acquire_options at_most_two{.mode = colock::lock_mode::shared, .max_holders = 2};
    colock::lock first = co_await locker.acquire("resource2", at_most_two);
    colock::lock second = co_await locker.acquire("resource2", at_most_two);
    BOOST_TEST(!co_await locker.try_acquire("resource2", at_most_two));
    // Each claim has its own limit.
    BOOST_TEST(!!co_await locker.try_acquire("resource2", {.mode = colock::lock_mode::shared, .max_holders = 3}));
}

COLOCK_FIXTURE(memory_fixture, a_lock_id_is_a_group)
{
    colock::lock_group group = locker.group("abcd1234");
    co_await group.acquire("resource1", {.ttl = 0ms, .retry = colock::retry_policy::never()});
    co_await group.acquire("resource2", {.mode = colock::lock_mode::shared});
    BOOST_TEST((co_await other.list({.group = "abcd1234"})).size() == 2U);
    // Another handle with the same id is another holder.
    colock::lock_group theirs = other.group("abcd1234");
    co_await theirs.acquire("resource2", {.mode = colock::lock_mode::shared});
    BOOST_TEST((co_await other.list({.group = "abcd1234"})).size() == 3U);
}

COLOCK_FIXTURE(memory_fixture, a_generated_id)
{
    colock::lock_group group = locker.group();
    co_await group.acquire("resource1");
    BOOST_TEST(co_await other.is_locked("resource1"));
    BOOST_TEST((co_await other.list({.group = group.id()})).size() == 1U);
}

COLOCK_FIXTURE(memory_fixture, one_key_once_in_a_group)
{
    colock::lock_group group = locker.group();
    co_await group.acquire("resource2", {.mode = colock::lock_mode::shared});
    BOOST_TEST((co_await code_of<colock::validation_error>(
                    group.acquire("resource2", {.mode = colock::lock_mode::shared})) == errc::invalid_options));
}

COLOCK_FIXTURE(memory_fixture, unlock)
{
    colock::lock_group group = locker.group("abcd1234");
    co_await group.acquire("resource1");
    co_await pass(1s);
    co_await group.acquire("resource2");
    // As another process would do it.
    std::vector<colock::lock_report> unlocked = co_await other.group("abcd1234").release();
    std::ranges::sort(unlocked, std::greater(), [](const auto& each) { return each.before.created; });
    BOOST_TEST((keys_of(unlocked) == std::vector<std::string>{"resource2", "resource1"}));
    BOOST_TEST(unlocked.front().before.group == "abcd1234");
    BOOST_TEST(!co_await other.is_locked("resource1"));
    BOOST_TEST((co_await other.group("abcd1234").release()).empty());
}

COLOCK_FIXTURE(memory_fixture, renew)
{
    colock::lock_group group = locker.group();
    co_await group.acquire("resource1", {.ttl = 10s});
    co_await group.acquire("resource2", {.ttl = 10s});
    std::vector<colock::lock_report> renewed = co_await group.extend(60s);
    BOOST_TEST(renewed.size() == 2U);
    for (const colock::lock_report& each : renewed)
        BOOST_TEST(!each.status);
    co_await pass(50s);
    BOOST_TEST(group.held());
}

COLOCK_FIXTURE(memory_fixture, lock_that_was_not_renewed_is_reported)
{
    colock::lock_group group = locker.group();
    co_await group.acquire("resource1", {.ttl = 10s});
    co_await group.acquire("resource2", {.ttl = 1s});
    co_await pass(2s);
    std::vector<colock::lock_report> renewed = co_await group.extend(60s);
    BOOST_TEST_REQUIRE(renewed.size() == 2U);
    BOOST_TEST((renewed[0].status == errc::not_held));
    BOOST_TEST(!renewed[1].status);
    BOOST_TEST(!group.held());
}

COLOCK_FIXTURE(memory_fixture, a_lock_without_ttl_is_not_renewed)
{
    colock::lock_group group = locker.group();
    co_await group.acquire("resource1", {.ttl = 10s});
    co_await group.acquire("resource2", {.ttl = 0ms});
    BOOST_TEST((co_await code_of<colock::validation_error>(group.extend(60s)) == errc::invalid_ttl));
    BOOST_TEST((group.locks().front().ttl() == 10s));
}

COLOCK_FIXTURE(memory_fixture, renew_by_id)
{
    colock::lock_group group = locker.group("abcd1234");
    co_await group.acquire("resource1", {.ttl = 10s});
    BOOST_TEST((co_await group.extend(60s)).size() == 1U);
    BOOST_TEST((co_await code_of<colock::extend_error>(other.group("unknown").extend(60s)) == errc::not_held));
}

COLOCK_FIXTURE(memory_fixture, details)
{
    colock::lock lock =
        co_await locker.acquire("resource1", {.ttl = 10s, .owner = "john", .comment = "rebuild", .host = "host.name"});
    std::vector<colock::lock_status> told = co_await other.list({.key = "resource1"});
    BOOST_TEST_REQUIRE(told.size() == 1U);
    BOOST_TEST(told.front().owner == "john");
    BOOST_TEST(told.front().comment == "rebuild");
    BOOST_TEST(told.front().host == "host.name");
    BOOST_TEST(!locker.defaults().host.empty());
}

COLOCK_FIXTURE(memory_fixture, status)
{
    colock::lock lock = co_await locker.acquire("resource1", {.ttl = 10s, .owner = "john"});
    co_await pass(1s);
    co_await lock.extend(10s);
    std::vector<colock::lock_status> found = co_await other.list({.owner = "john"});
    BOOST_TEST_REQUIRE(found.size() == 1U);
    const colock::lock_status& status = found.front();
    BOOST_TEST(status.key == "resource1");
    BOOST_TEST(std::string(to_string(status.mode)) == "exclusive");
    BOOST_TEST((status.created < status.renewed));
    BOOST_TEST((status.remaining > 9s));
    BOOST_TEST((co_await other.list({.owner = "jane"})).empty());
}

COLOCK_FIXTURE(memory_fixture, filters)
{
    const auto before = std::chrono::system_clock::now() - 1h;
    colock::lock five = co_await locker.acquire("resource1", {.ttl = 5s});
    colock::lock hour = co_await locker.acquire("resource2", {.ttl = 1h});
    colock::lock never = co_await locker.acquire("other", {.ttl = 0ms});
    const auto found = [&](colock::filter which) -> asio::awaitable<std::vector<std::string>> {
        std::vector<std::string> keys = keys_of(co_await other.list(std::move(which)));
        std::ranges::sort(keys);
        co_return keys;
    };
    // GCC 14 fails with an internal error for a list of several strings in an expression with co_await.
    using keys = std::vector<std::string>;
    const keys resources{"resource1", "resource2"};
    const keys all{"other", "resource1", "resource2"};
    const keys longer{"other", "resource2"};
    BOOST_TEST((co_await found({.key = "resource1"}) == keys{"resource1"}));
    BOOST_TEST((co_await found({.key_prefix = "res"}) == resources));
    BOOST_TEST((co_await found({.mode = colock::lock_mode::shared}) == keys{}));
    BOOST_TEST((co_await found({.created_before = before}) == keys{}));
    BOOST_TEST((co_await found({.created_after = before}) == all));
    BOOST_TEST((co_await found({.remaining_below = 60s}) == keys{"resource1"}));
    BOOST_TEST((co_await found({.remaining_at_least = 60s}) == longer));
}

COLOCK_FIXTURE(memory_fixture, the_newest_first)
{
    std::vector<colock::lock> locks;
    for (const char* const key : {"1", "2", "3", "4", "5", "6", "7"}) {
        locks.push_back(co_await locker.acquire(key));
        co_await pass(1s);
    }
    std::vector<colock::lock_status> all = co_await locker.list({}, colock::list_order::newest_first);
    BOOST_TEST((keys_of(all) == std::vector<std::string>{"7", "6", "5", "4", "3", "2", "1"}));
}

COLOCK_FIXTURE(memory_fixture, in_pages)
{
    std::vector<colock::lock> locks;
    for (int i = 0; i < 1000; ++i)
        locks.push_back(co_await locker.acquire("resource" + std::to_string(i)));
    std::size_t seen = 0;
    colock::lock_page page;
    do {
        page = co_await other.list_page({.key_prefix = "resource"}, page.next);
        seen += page.locks.size();
    } while (!page.next.empty());
    BOOST_TEST(seen == 1000U);
}

COLOCK_FIXTURE(memory_fixture, purge_returns_expired_locks)
{
    colock::lock expired = co_await locker.acquire("resource1", {.ttl = 10s, .owner = "john"});
    colock::lock live = co_await locker.acquire("resource2");
    co_await pass(11s);
    BOOST_TEST((co_await other.list({.key = "resource1"})).empty());
    std::vector<colock::lock_status> purged = co_await other.purge();
    BOOST_TEST_REQUIRE(purged.size() == 1U);
    BOOST_TEST(purged.front().owner == "john");
    BOOST_TEST(live.held());
}

COLOCK_FIXTURE(memory_fixture, purge_with_the_rest_of_each_group)
{
    colock::lock_group group = locker.group("abcd1234");
    co_await group.acquire("resource1", {.ttl = 10s});
    co_await group.acquire("resource2", {.ttl = 1h});
    // The lock is not released, as after a crash.
    const std::string ticket = co_await group.take("resource1").detach();
    co_await pass(11s);
    for (const colock::lock_status& expired : co_await other.purge())
        if (!expired.group.empty())
            co_await other.group(expired.group).release();
    BOOST_TEST(!co_await other.is_locked("resource2"));
}

COLOCK_FIXTURE(memory_fixture, purge_takes_no_live_lock)
{
    colock::lock_group group = locker.group();
    co_await group.acquire("resource1", {.ttl = 10s});
    co_await group.acquire("resource2", {.ttl = 1h});
    const std::string ticket = co_await group.take("resource1").detach();
    co_await pass(11s);
    BOOST_TEST((keys_of(co_await other.purge(100)) == std::vector<std::string>{"resource1"}));
    BOOST_TEST(co_await other.is_locked("resource2"));
}

COLOCK_FIXTURE(memory_fixture, a_deadline_is_a_context)
{
    colock::lock busy = co_await other.acquire("resource1", {.ttl = 0ms});
    auto [failed, lock] = co_await locker.async_acquire("resource1", asio::cancel_after(10ms, asio::as_tuple));
    BOOST_TEST((failed == asio::error::operation_aborted));
    BOOST_TEST(!lock);
    co_await busy.release();
    BOOST_TEST(!co_await other.is_locked("resource1"));
}

COLOCK_FIXTURE(memory_fixture, a_purge_loop)
{
    colock::locker locks(backend, {.purge = colock::background_purge{.interval = 1min, .limit = 1000}});
    colock::lock expired = co_await other.acquire("resource1", {.ttl = 10s});
    co_await pass(2min);
    BOOST_TEST((co_await other.purge()).empty());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(on_mongodb, *is_served("COLOCK_TEST_MONGODB"))

COLOCK_FIXTURE(mongodb_fixture, indexes)
{
    const auto adapter = make();
    co_await colock::mongo::create_indexes(adapter);
    co_await colock::mongo::create_indexes(adapter);
    BOOST_TEST((co_await code_of(colock::mongo::create_indexes(adapter)) == colock::error_code()));
}

COLOCK_FIXTURE(mongodb_fixture, locks_of_both_kinds_and_their_status)
{
    colock::lock exclusive = co_await locker.acquire("resource1", {.ttl = 0ms, .owner = "john"});
    colock::lock shared = co_await locker.acquire("resource2", {.ttl = 10s, .mode = colock::lock_mode::shared});
    BOOST_TEST(!co_await other.try_acquire("resource1"));
    BOOST_TEST(!!co_await other.try_acquire("resource2", {.mode = colock::lock_mode::shared}));
    std::vector<colock::lock_status> found = co_await other.list({.key = "resource1", .owner = "john"});
    BOOST_TEST_REQUIRE(found.size() == 1U);
    BOOST_TEST(!found.front().remaining);
    BOOST_TEST(found.front().created.has_value());
    BOOST_TEST(found.front().fence == exclusive.fence());
}

COLOCK_FIXTURE(mongodb_fixture, unlock)
{
    colock::lock_group group = locker.group("abcd1234");
    co_await group.acquire("resource1");
    co_await group.acquire("resource2", {.mode = colock::lock_mode::shared});
    std::vector<colock::lock_report> unlocked = co_await other.group("abcd1234").release();
    BOOST_TEST(unlocked.size() == 2U);
    BOOST_TEST((co_await other.list()).empty());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(on_redis, *is_served("COLOCK_TEST_REDIS"))

COLOCK_FIXTURE(redis_fixture, status)
{
    colock::lock lock = co_await locker.acquire("resource1", {.ttl = 10s, .owner = "john"});
    co_await lock.extend(20s);
    std::vector<colock::lock_status> found = co_await other.list({.owner = "john"});
    BOOST_TEST_REQUIRE(found.size() == 1U);
    BOOST_TEST(found.front().key == "resource1");
    BOOST_TEST(found.front().created.has_value());
    BOOST_TEST(!found.front().renewed);
    BOOST_TEST((found.front().remaining > 10s));
    BOOST_TEST(found.front().fence == 0U);
    BOOST_TEST(lock.fence() != 0U);
}

COLOCK_FIXTURE(redis_fixture, unlock)
{
    colock::lock_group group = locker.group("abcd1234");
    co_await group.acquire("resource1");
    co_await group.acquire("resource2", {.mode = colock::lock_mode::shared});
    std::vector<colock::lock_report> unlocked = co_await other.group("abcd1234").release();
    BOOST_TEST(unlocked.size() == 2U);
    BOOST_TEST((co_await other.list()).empty());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(on_zookeeper, *is_served("COLOCK_TEST_ZOOKEEPER"))

COLOCK_FIXTURE(zookeeper_fixture, unlock)
{
    colock::lock_group group = locker.group("abcd1234");
    co_await group.acquire("resource1");
    co_await group.acquire("resource2", {.mode = colock::lock_mode::shared});
    std::vector<colock::lock_report> unlocked = co_await other.group("abcd1234").release();
    BOOST_TEST(unlocked.size() == 2U);
    BOOST_TEST((co_await other.list()).empty());
}

BOOST_AUTO_TEST_SUITE_END()
