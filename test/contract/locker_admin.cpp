// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "locker_helpers.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace colock::contract {

// Administration.

COLOCK_CONTRACT_CASE(locker, held_locks_are_this_lockers_own)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto first = run_coro(env.io(), mine.acquire("b")), second = run_coro(env.io(), mine.acquire("a"));
    const auto others = run_coro(env.io(), other.acquire("c"));
    CHECK_STRINGS(keys_of(mine.held_locks()), {"b", "a"});
    CHECK_STRINGS(keys_of(other.held_locks()), {"c"});
    BOOST_TEST(mine.held_locks()[0].fence == first.fence());
    run_coro(env.io(), first.release());
    CHECK_STRINGS(keys_of(mine.held_locks()), {"a"});
    BOOST_TEST(mine.stats().held == 1U);
}

COLOCK_CONTRACT_CASE(locker, list_shows_keys_and_holders, &capabilities::list)
{
    const auto locker = env.make_locker({.owner = "default-owner", .host = "some-host"});
    const auto first = run_coro(env.io(), locker.acquire("a")),
               second = run_coro(env.io(), locker.acquire("b", {.owner = "own", .comment = "why"}));
    const auto a = run_coro(env.io(), locker.list({.key = "a"})), b = run_coro(env.io(), locker.list({.owner = "own"}));
    BOOST_REQUIRE((a.size() == 1U && b.size() == 1U));
    BOOST_TEST(a[0].owner == "default-owner");
    BOOST_TEST(a[0].host == "some-host");
    BOOST_TEST(b[0].key == "b");
    BOOST_TEST(b[0].comment == "why");
    BOOST_TEST((b[0].fence == second.fence() || (b[0].fence == 0 && !env.capabilities().lists_fence)));
    BOOST_TEST(run_coro(env.io(), locker.list()).size() == 2U);
    BOOST_TEST(run_coro(env.io(), locker.purge()).empty());
    BOOST_TEST((first.held() && second.held()));
}

COLOCK_CONTRACT_CASE(locker, pages_and_list_return_the_same, &capabilities::list)
{
    const auto locker = env.make_locker();
    std::vector<colock::lock> held;
    std::vector<std::string> all;
    for (int i = 0; i < 300; ++i) {
        held.push_back(run_coro(env.io(), locker.acquire("k" + std::to_string(1000 + i))));
        all.push_back(held.back().key());
    }
    std::vector<std::string> listed, in_pages;
    for (const auto& each : run_coro(env.io(), locker.list()))
        listed.push_back(each.key);
    lock_page page;
    do {
        page = run_coro(env.io(), locker.list_page({}, page.next));
        for (const auto& each : page.locks)
            in_pages.push_back(each.key);
    } while (!page.next.empty());
    for (auto* each : {&listed, &in_pages}) {
        std::ranges::sort(*each);
        BOOST_TEST(*each == all, boost::test_tools::per_element());
    }
    for (auto& lock : held)
        run_coro(env.io(), lock.release());
}

COLOCK_CONTRACT_CASE(locker, a_list_may_begin_with_the_newest, &capabilities::list)
{
    const auto locker = env.make_locker();
    std::vector<colock::lock> held;
    std::vector<std::string> newest_first;
    for (const std::string key : {"b", "d", "a", "c"}) {
        held.push_back(run_coro(env.io(), locker.acquire(key)));
        newest_first.insert(newest_first.begin(), key);
        env.pass_time(env.short_ttl() / 10);
    }
    std::vector<std::string> listed;
    bool knows_when = true;
    for (const auto& each : run_coro(env.io(), locker.list({}, list_order::newest_first))) {
        listed.push_back(each.key);
        knows_when = knows_when && each.created;
    }
    if (knows_when)
        BOOST_TEST(listed == newest_first, boost::test_tools::per_element());
    BOOST_TEST(listed.size() == 4U);
    for (auto& lock : held)
        run_coro(env.io(), lock.release());
}

COLOCK_CONTRACT_CASE(locker, host_of_the_holder_is_listed, &capabilities::list)
{
    const auto locker = env.make_locker({.ttl = 20s, .host = "of the locker"});
    const auto plain = run_coro(env.io(), locker.acquire("a")),
               own = run_coro(env.io(), locker.acquire("b", {.host = std::string(256, 'h')}));
    const auto shown = [&](const std::string& key) { return run_coro(env.io(), locker.list({.key = key})).at(0); };
    BOOST_TEST(shown("a").host == "of the locker");
    BOOST_TEST(shown("b").host == std::string(256, 'h'));
    BOOST_TEST(shown("b").owner == locker.defaults().owner);
    for (const auto& host : {std::string(257, 'h'), std::string("a\0b", 3)}) {
        BOOST_TEST((failure_of<validation_error>(env, locker.acquire("c", {.host = host})) == errc::invalid_options));
        BOOST_TEST(
            (failure_of<validation_error>(env, locker.try_acquire("c", {.host = host})) == errc::invalid_options));
    }
    BOOST_TEST(!run_coro(env.io(), locker.is_locked("c")));
}

COLOCK_CONTRACT_CASE(locker, locks_are_stored_with_the_defaults, &capabilities::list)
{
    const auto named = env.make_locker({.ttl = 20s, .owner = "me", .host = "here"}).defaults();
    BOOST_TEST(named.owner == "me");
    BOOST_TEST(named.host == "here");
    BOOST_TEST((named.ttl == 20s));
    const auto locker = env.make_locker();
    const auto defaults = locker.defaults();
    BOOST_TEST(!defaults.owner.empty());
    BOOST_TEST((defaults.ttl == 30s));
    const auto held = run_coro(env.io(), locker.acquire("k"));
    const auto seen = run_coro(env.io(), locker.list({.key = "k"})).at(0);
    BOOST_TEST(seen.owner == defaults.owner);
    BOOST_TEST(seen.host == defaults.host);
}

COLOCK_CONTRACT_CASE(locker, break_lock_takes_a_lock_away, &capabilities::list)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto lock = run_coro(env.io(), mine.acquire("k"));
    auto lost = testing::start(env.io(), lock.lost());
    env.pass_time(1ms);
    const auto removed = run_coro(env.io(), mine.break_lock("k"));
    BOOST_REQUIRE(removed.size() == 1U);
    BOOST_TEST((removed[0].fence == lock.fence() || (removed[0].fence == 0 && !env.capabilities().lists_fence)));
    BOOST_TEST(lost.get(env.io()) == lost_reason::broken);
    BOOST_TEST(!lock.held());
    auto next = run_coro(env.io(), other.acquire("k"));
    BOOST_TEST((failure_of<release_error>(env, lock.release(on_failure::raise)) == errc::not_held));
    // The release of the broken lock has not touched the next one.
    BOOST_TEST(run_coro(env.io(), next.is_locked()));
    run_coro(env.io(), next.release(on_failure::raise));
    BOOST_TEST(run_coro(env.io(), mine.break_lock("k")).empty());
}

COLOCK_CONTRACT_CASE(locker, break_by_another_process_is_detected, &capabilities::list)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto asked = run_coro(env.io(), mine.acquire("asked"));
    auto renewed = run_coro(env.io(), mine.acquire("renewed", {.ttl = env.short_ttl(), .renewal = renewal::automatic}));
    auto lost = testing::start(env.io(), renewed.lost());
    BOOST_TEST(run_coro(env.io(), other.break_lock("asked")).size() == 1U);
    BOOST_TEST(!run_coro(env.io(), asked.is_locked()));
    BOOST_TEST((failure_of<release_error>(env, asked.release(on_failure::raise)) == errc::not_held));
    BOOST_TEST(run_coro(env.io(), other.break_lock("renewed")).size() == 1U);
    pass_slowly_until(env, [&] { return lost.done(); });
    BOOST_TEST(!renewed.held());
    const auto reason = lost.get(env.io());
    // `broken` if the adapter is shared, `taken` if the next renewal has detected it.
    BOOST_TEST((reason == lost_reason::broken || reason == lost_reason::taken));
}

COLOCK_CONTRACT_CASE(locker, counters_count)
{
    const auto locker = env.make_locker();
    auto lock = run_coro(env.io(), locker.acquire("k"));
    BOOST_TEST(!run_coro(env.io(), locker.try_acquire("k")));
    auto waiting = testing::start(env.io(), locker.acquire("k"));
    pass_slowly_until(env, [&] { return locker.stats().waiting == 1U; });
    auto now = locker.stats();
    BOOST_TEST(now.held == 1U);
    BOOST_TEST(now.grants == 1U);
    BOOST_TEST(now.attempts >= 2U);
    BOOST_TEST(now.busy >= 1U);
    run_coro(env.io(), lock.release());
    auto next = waiting.get(env.io());
    run_coro(env.io(), next.release());
    now = locker.stats();
    BOOST_TEST(now.held == 0U);
    BOOST_TEST(now.waiting == 0U);
    BOOST_TEST(now.grants == 2U);
    BOOST_TEST(now.releases == 2U);
    BOOST_TEST(now.waits == 1U);
    BOOST_TEST((now.waited_total >= 2ms));
    BOOST_TEST((now.waited_longest == now.waited_total));
    BOOST_TEST(now.lost(lost_reason::expired) == 0U);
}

// Shutdown.

COLOCK_CONTRACT_CASE(locker, shutdown_ends_all_of_a_lockers_work)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto held = run_coro(env.io(), mine.acquire("held"));
    auto lost = testing::start(env.io(), held.lost());
    auto blocker = run_coro(env.io(), other.acquire("k"));
    auto waiting = testing::start(env.io(), mine.acquire("k"));
    env.pass_time(1ms);
    const auto report = run_coro(env.io(), mine.shutdown());
    BOOST_TEST(report.clean());
    BOOST_TEST(report.unproven == 0U);
    BOOST_TEST(!held.held());
    BOOST_TEST(lost.get(env.io()) == lost_reason::shutting_down);
    try {
        static_cast<void>(waiting.get(env.io()));
        BOOST_ERROR("granted");
    } catch (const error& ended) {
        BOOST_TEST((ended.code() == errc::shutting_down));
    }
    BOOST_TEST((failure_of<error>(env, mine.acquire("new")) == errc::shutting_down));
    BOOST_TEST(!is_taken(env, other, "held"));
    BOOST_TEST(blocker.held());
    BOOST_TEST(run_coro(env.io(), mine.shutdown()).clean());
    run_coro(env.io(), blocker.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, destruction_of_the_last_locker_ends_waiters_and_keeps_locks)
{
    std::optional<locker> mine = env.make_locker();
    auto held = run_coro(env.io(), mine->acquire("k"));
    std::optional<error_code> ended;
    mine->async_acquire("k", [&](error_code ec, colock::lock) { ended = ec; });
    env.pass_time(1ms);
    BOOST_TEST(!ended);
    mine.reset();
    testing::run_until(env.io(), [&] { return ended.has_value(); });
    BOOST_TEST((ended == errc::shutting_down));
    BOOST_TEST(held.held());
    BOOST_TEST(run_coro(env.io(), held.is_locked()));
    run_coro(env.io(), held.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, async_functions_complete_with_a_code_and_never_inline)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    std::optional<colock::lock> held;
    mine.async_acquire("k", [&](error_code ec, colock::lock lock) {
        BOOST_TEST(!ec);
        held = std::move(lock);
    });
    BOOST_TEST(!held);
    testing::run_until(env.io(), [&] { return held.has_value(); });
    BOOST_TEST(held->held());
    std::optional<error_code> refused;
    other.async_acquire("k", {.retry = retry_policy::never()}, [&](error_code ec, colock::lock lock) {
        refused = ec;
        BOOST_TEST(!lock);
    });
    testing::run_until(env.io(), [&] { return refused.has_value(); });
    BOOST_TEST((refused == errc::retry_exhausted));
    std::optional<error_code> released;
    held->async_release(on_failure::raise, [&](error_code ec) { released = ec; });
    testing::run_until(env.io(), [&] { return released.has_value(); });
    BOOST_TEST(!*released);
    std::optional<int> result;
    mine.async_with_lock(
        "k", []() -> asio::awaitable<int> { co_return 7; },
        [&](std::exception_ptr failure, int value) {
            BOOST_TEST(!failure);
            result = value;
        });
    testing::run_until(env.io(), [&] { return result.has_value(); });
    BOOST_TEST(*result == 7);
}

} // namespace colock::contract
