// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "locker_verbs.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>

#include <cstddef>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace colock::contract {

// Shared.

COLOCK_CONTRACT_CASE(locker, shared_locks_share, &capabilities::shared)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    const acquire_options shared{.mode = lock_mode::shared};
    auto first = run_coro(on.io(), mine.acquire("k", shared)), second = run_coro(on.io(), other.acquire("k", shared));
    BOOST_TEST(first.mode() == lock_mode::shared);
    BOOST_TEST(!run_coro(on.io(), mine.try_acquire("k")));
    auto writer = testing::start(on.io(), mine.acquire("k"));
    on.pass_time(1ms);
    run_coro(on.io(), first.release(on_failure::raise));
    on.pass_time(1ms);
    BOOST_TEST(!writer.done());
    run_coro(on.io(), second.release(on_failure::raise));
    auto exclusive = writer.get(on.io());
    BOOST_TEST(!run_coro(on.io(), other.try_acquire("k", shared)));
    run_coro(on.io(), exclusive.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, a_semaphore_has_as_many_holders_as_it_says, &capabilities::semaphore)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    const acquire_options two{.mode = lock_mode::shared, .max_holders = 2};
    auto first = run_coro(on.io(), mine.acquire("k", two)), second = run_coro(on.io(), other.acquire("k", two));
    BOOST_TEST(!run_coro(on.io(), mine.try_acquire("k", two)));
    auto waiting = testing::start(on.io(), other.acquire("k", two));
    on.pass_time(1ms);
    BOOST_TEST(!waiting.done());
    run_coro(on.io(), first.release(on_failure::raise));
    auto third = waiting.get(on.io());
    run_coro(on.io(), second.release(on_failure::raise));
    run_coro(on.io(), third.release(on_failure::raise));
}

// Groups.

COLOCK_CONTRACT_CASE(locker, a_group_holds_all_its_keys_in_order)
{
    const auto locker = on.make_locker();
    auto group = run_coro(on.io(), locker.acquire_all(strings{"b", "a", "c", "a"}));
    BOOST_TEST(group.held());
    CHECK_STRINGS(keys_of(locker.held_locks()), {"a", "b", "c"});
    if (on.able().list) {
        BOOST_TEST(run_coro(on.io(), locker.list({.group = group.id()})).size() == 3U);
    }
    run_coro(on.io(), group.acquire("0"));
    BOOST_TEST(group.size() == 4U);
    for (const auto& report : run_coro(on.io(), group.extend(1h)))
        BOOST_TEST(!report.status);
    for (const auto& lock : group.locks())
        BOOST_TEST((lock.ttl() == 1h));
    strings released;
    for (const auto& report : run_coro(on.io(), group.release())) {
        BOOST_TEST(!report.status);
        released.push_back(report.key);
    }
    CHECK_STRINGS(released, {"0", "c", "b", "a"});
    BOOST_TEST(group.empty());
    BOOST_TEST(!is_taken(on, locker, "b"));
}

COLOCK_CONTRACT_CASE(locker, a_group_holds_nothing_while_it_waits)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    auto blocker = run_coro(on.io(), other.acquire("b"));
    auto waiting = testing::start(on.io(), mine.acquire_all(strings{"a", "b", "c"}));
    const auto free = [&](const char* key) { return !is_taken(on, other, key); };
    pass_slowly_until(
        on, [&] { return (mine.stats().grants > 0 || on.able().several) && mine.stats().busy > 0 && free("a"); });
    BOOST_TEST(!waiting.done());
    BOOST_TEST(free("c"));
    run_coro(on.io(), blocker.release(on_failure::raise));
    auto group = waiting.get(on.io());
    BOOST_TEST(group.held());
    BOOST_TEST(group.size() == 3U);
    run_coro(on.io(), group.release());
}

COLOCK_CONTRACT_CASE(locker, a_group_that_gives_up_gives_all_back)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    auto blocker = run_coro(on.io(), other.acquire("c"));
    BOOST_TEST((failure_of<retry_error>(on, mine.acquire_all(strings{"a", "b", "c"},
                                                {.retry = retry_policy::never()})) == errc::retry_exhausted));
    for (const auto* key : {"a", "b"}) {
        auto lock = run_coro(on.io(), other.acquire(key));
        run_coro(on.io(), lock.release(on_failure::raise));
    }
    run_coro(on.io(), blocker.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, groups_in_opposite_orders_do_not_deadlock)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    const auto work = [](colock::locker by, strings keys) -> asio::awaitable<void> {
        for (int i = 0; i < 5; ++i) {
            auto group = co_await by.acquire_all(keys);
            BOOST_TEST(group.held());
            co_await group.release();
        }
    };
    auto first = testing::start(on.io(), work(mine, {"a", "b"}));
    auto second = testing::start(on.io(), work(other, {"b", "a"}));
    for (int i = 0; i < 200 && !(first.done() && second.done()); ++i)
        on.pass_time(on.short_ttl() / 20);
    first.get(on.io());
    second.get(on.io());
}

COLOCK_CONTRACT_CASE(locker, many_groups_of_random_keys_do_not_deadlock)
{
    // One by one each takes many round trips.
    const int lists = on.able().several ? 1000 : 100;
    constexpr std::size_t crowd = 64;
    const auto mine = on.make_locker(), other = on.make_other_locker();
    std::mt19937 random(7);
    std::map<std::string, int> holders;
    int begun = 0;
    std::size_t ended = 0;
    const auto random_keys = [&] {
        strings keys;
        for (auto left = 2 + random() % 4; left > 0; --left)
            keys.push_back("k" + std::to_string(random() % 20));
        return keys;
    };
    const auto work = [&](const locker& by) -> asio::awaitable<void> {
        while (begun++ < lists) {
            auto group = co_await by.acquire_all(random_keys());
            BOOST_TEST(group.held());
            for (const auto& each : group.locks())
                BOOST_TEST(++holders[each.key()] == 1);
            co_await asio::post(asio::deferred);
            for (const auto& each : group.locks())
                --holders[each.key()];
            co_await group.release();
        }
        ++ended;
    };
    std::vector<testing::running<void>> all;
    for (std::size_t n = 0; n < crowd; ++n)
        all.push_back(testing::start(on.io(), work(n % 2 ? mine : other)));
    for (int i = 0; i < 4000 && ended < crowd; ++i)
        on.pass_time(on.short_ttl() / 50);
    BOOST_TEST_REQUIRE(ended == crowd, ended << " of " << crowd << " have ended");
    for (auto& each : all)
        each.get(on.io());
}

COLOCK_CONTRACT_CASE(locker, the_global_lock_is_one_lock)
{
    const auto mine = on.make_locker(), other = on.make_other_locker();
    auto group = run_coro(on.io(), mine.acquire_global());
    BOOST_TEST(group.held());
    BOOST_TEST(is_taken(on, other, locker::global_key));
    BOOST_TEST(
        (failure_of<retry_error>(on, other.acquire_global({.retry = retry_policy::never()})) == errc::retry_exhausted));
    auto lock = run_coro(on.io(), other.try_acquire("k"));
    BOOST_TEST(lock.has_value());
    run_coro(on.io(), group.release());
}

} // namespace colock::contract
