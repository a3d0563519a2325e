// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "served.hpp"
#include "support/foreign_cursors.hpp"
#include "support/pages.hpp"
#include "support/print.hpp"

#include <string>
#include <vector>

namespace colock::testing {
namespace {

/// Stores `count` exclusive locks without an adapter.
void store_locks(served& env, int count)
{
    env.raw({"EVAL",
        "for i = 1, ARGV[1] do redis.call('SET', '{colock}:k' .. i, string.rep('a', 43) .. '\\0\\0\\0', 'PX', 3600000) "
        "end",
        "0", std::to_string(count)});
}
/// Stores `count` keys with three readers each. Two of the readers have expired.
void store_readers(served& env, int count)
{
    env.raw({"EVAL",
        "local now = redis.call('TIME')[1] * 1000 "
        "local function reader(digit) return 's' .. string.rep(digit, 43) .. '\\0\\0\\0' end "
        "for i = 1, ARGV[1] do redis.call('ZADD', '{colock}:r' .. i, now - 1000, reader('a'), now - 2000, reader('b'), "
        "now + 3600000, reader('c')) end",
        "0", std::to_string(count)});
}

std::vector<list_outcome> list_pages(served& env, const filter& which)
{
    return all_pages([&](const std::string& at) {
        return run_coro(env.io, env.test_driver->backend().listing({.filter = which, .cursor = at}));
    });
}
std::vector<list_outcome> purge_steps(served& env)
{
    return all_pages([&](const std::string& at) {
        return run_coro(env.io, env.test_driver->backend().listing({.action = listing_action::purge, .cursor = at}));
    });
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_listing)

BOOST_AUTO_TEST_CASE(pages_are_small_and_contain_each_lock_once)
{
    served f;
    store_locks(f, 20'000);
    store_readers(f, 1000);
    const auto pages = list_pages(f, {});
    BOOST_TEST(pages.size() >= 10U);
    BOOST_TEST(count_locks(pages, 1999) == 21'000U);
    BOOST_TEST(distinct_keys(pages).size() == 21'000U);
    BOOST_TEST(f.raw({"INFO", "commandstats"}).find("cmdstat_keys") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(few_locks_among_many_keys_are_found_in_limited_pages)
{
    served f;
    store_locks(f, 50'000);
    f.test_driver->grant(driver::exclusive("mine"));
    const auto pages = list_pages(f, {.key_prefix = "mi"});
    BOOST_TEST(count_locks(pages, 1) == 1U);
    BOOST_TEST(pages.size() > 2U);
}

BOOST_AUTO_TEST_CASE(purge_removes_many_expired_locks_in_steps)
{
    served f;
    store_locks(f, 1000);
    store_readers(f, 3000);
    BOOST_TEST(f.test_driver->purge(700).size() == 700U);
    BOOST_TEST(count_locks(purge_steps(f), 1000) == 5300U);
    BOOST_TEST(f.test_driver->list({.mode = lock_mode::shared}).size() == 3000U);
    BOOST_TEST(f.test_driver->list({.mode = lock_mode::exclusive}).size() == 1000U);
}

BOOST_AUTO_TEST_CASE(a_key_with_many_expired_readers_is_swept_in_parts)
{
    served f;
    f.raw({"EVAL",
        "for i = 1, 3000 do redis.call('ZADD', '{colock}:r', i, 's' .. string.format('%043d', i) .. '\\0\\0\\0') end",
        "0"});
    const auto steps = purge_steps(f);
    BOOST_TEST(count_locks(steps, 1000) == 3000U);
    BOOST_TEST(steps.size() >= 3U);
    BOOST_TEST(f.raw({"EXISTS", "{colock}:r"}) == "0");
}

BOOST_AUTO_TEST_CASE(after_a_purge_the_server_is_as_small_as_before)
{
    served f;
    f.test_driver->release_held([&] {
        const auto claim = driver::exclusive("k");
        f.test_driver->grant(claim);
        return claim;
    }());
    // Only the fence counter stays.
    const auto before = f.raw({"DBSIZE"});
    for (int i = 0; i < 100; ++i) {
        const auto key = "k" + std::to_string(i);
        f.test_driver->grant(driver::shared(key, 0, 100ms));
        f.test_driver->grant(driver::shared(key, 0, 0ms));
        f.test_driver->check_refused(driver::exclusive(key));
        // The last one of these expires last.
        f.test_driver->grant(driver::exclusive("x" + key, 100ms));
    }
    // Readers without a ttl are made to expire.
    for (int i = 0; i < 100; ++i)
        f.raw({"EVAL",
            "local last = redis.call('ZRANGE', KEYS[1], -1, -1)[1] redis.call('ZADD', KEYS[1], 'XX', 1, last) "
            "redis.call('PEXPIRE', KEYS[1], 6000)",
            "1", "{colock}:k" + std::to_string(i)});
    run_until(f.io, [&] { return f.raw({"EXISTS", "{colock}:xk99"}) == "0"; });
    BOOST_TEST(f.test_driver->purge().size() == 200U);
    // The intents of the writers expire after six seconds, and their sets with them.
    run_until(f.io, [&] { return f.raw({"DBSIZE"}) == before; });
}

BOOST_AUTO_TEST_CASE(foreign_cursors_are_refused)
{
    asio::io_context io;
    const std::vector<std::string> cursors{"x", "redis", "redis:", "redis:x", "redis:1x", "redis:-1", "redis: 1",
        "redis:18446744073709551616", "memory:0.0", "mongodb:tk", "zookeeper:00"};
    check_cursors_are_refused(*redis::make_adapter(io.get_executor(), {.url = "redis://127.0.0.1:1"}), cursors);
    check_cursors_are_refused(*redis::make_quorum(io.get_executor(),
                                  {"redis://127.0.0.1:1", "redis://127.0.0.1:2", "redis://127.0.0.1:3"}, {}),
        cursors);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
