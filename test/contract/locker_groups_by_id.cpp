// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Groups that are released and extended by their id, also by another process.
#include "locker_helpers.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace colock::contract {

COLOCK_CONTRACT_CASE(locker, a_group_is_released_by_another_process_that_knows_its_id, &capabilities::groups)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto group = mine.group("order 7");
    BOOST_TEST(group.id() == "order 7");
    run_coro(env.io(), group.acquire("a", {.owner = "me", .comment = "why"}));
    run_coro(env.io(), group.acquire("b", {.ttl = env.short_ttl(), .renewal = renewal::automatic}));
    const auto alone = run_coro(env.io(), mine.acquire("c"));
    auto lost = testing::start(env.io(), group.locks()[1].lost());
    auto waiting = testing::start(env.io(), other.acquire("a"));
    env.pass_time(1ms);
    auto theirs = other.group("order 7");
    BOOST_TEST(theirs.empty());
    auto reports = run_coro(env.io(), theirs.release());
    std::ranges::sort(reports, {}, &lock_report::key);
    BOOST_TEST_REQUIRE(reports.size() == 2U);
    BOOST_TEST(reports[0].key == "a");
    BOOST_TEST(reports[1].key == "b");
    for (const auto& report : reports) {
        BOOST_TEST(!report.status);
        BOOST_TEST(report.before.key == report.key);
        BOOST_TEST(report.before.group == "order 7");
    }
    BOOST_TEST(reports[0].before.owner == "me");
    BOOST_TEST(reports[0].before.comment == "why");
    auto next = waiting.get(env.io());
    pass_slowly_until(env, [&] { return lost.done(); });
    const auto reason = lost.get(env.io());
    BOOST_TEST((reason == lost_reason::broken || reason == lost_reason::taken));
    BOOST_TEST(alone.held());
    BOOST_TEST(!group.held());
    BOOST_TEST(run_coro(env.io(), theirs.release()).empty());
    // Locks that others hold by now are not touched.
    for (const auto& report : run_coro(env.io(), group.release()))
        BOOST_TEST((report.status == errc::not_held));
    BOOST_TEST(run_coro(env.io(), next.is_locked()));
    run_coro(env.io(), next.release(on_failure::raise));
}

COLOCK_CONTRACT_CASE(locker, group_by_id_is_reported_newest_first, &capabilities::groups)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto group = mine.group("g");
    for (const char* const key : {"3", "1", "4", "5", "2"}) {
        run_coro(env.io(), group.acquire(key));
        // The distance exceeds the resolution of every backend's clock.
        env.pass_time(2ms);
    }
    std::string order;
    for (const auto& report : run_coro(env.io(), other.group("g").release()))
        order += report.key;
    BOOST_TEST(order == "25413");
}

COLOCK_CONTRACT_CASE(locker, group_by_id_releases_own_locks_before_those_of_others, &capabilities::groups)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto group = mine.group("g"), elsewhere = mine.group("g"), theirs = other.group("g");
    run_coro(env.io(), theirs.acquire("a"));
    run_coro(env.io(), elsewhere.acquire("b"));
    run_coro(env.io(), group.acquire("c"));
    run_coro(env.io(), group.acquire("d"));
    auto lost = testing::start(env.io(), elsewhere.locks()[0].lost());
    env.pass_time(1ms);
    auto reports = run_coro(env.io(), group.release());
    BOOST_TEST_REQUIRE(reports.size() == 4U);
    BOOST_TEST(reports[0].key == "d");
    BOOST_TEST(reports[1].key == "c");
    BOOST_TEST(reports[0].before.group == "g");
    BOOST_TEST(!reports[0].before.owner.empty());
    BOOST_TEST(reports[0].before.fence != 0U);
    std::ranges::sort(reports, {}, &lock_report::key);
    BOOST_TEST(reports[0].key == "a");
    BOOST_TEST(reports[1].key == "b");
    for (const auto& report : reports)
        BOOST_TEST(!report.status);
    // Another handle of the same locker is notified at once.
    BOOST_TEST(!elsewhere.held());
    BOOST_TEST(lost.get(env.io()) == lost_reason::broken);
    for (const auto* key : {"a", "b", "c", "d"})
        BOOST_TEST(!is_taken(env, other, key));
    BOOST_TEST((run_coro(env.io(), theirs.release()).at(0).status == errc::not_held));
    BOOST_TEST((run_coro(env.io(), elsewhere.release()).at(0).status == errc::not_held));
}

COLOCK_CONTRACT_CASE(locker, group_without_a_given_id_affects_only_its_own_locks, &capabilities::groups)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto group = mine.group();
    run_coro(env.io(), group.acquire("a"));
    auto known = other.group(group.id());
    run_coro(env.io(), known.acquire("b"));
    BOOST_TEST(run_coro(env.io(), group.release()).size() == 1U);
    BOOST_TEST(known.held());
    // The locks of an acquire_all are reached in the same way.
    auto several = run_coro(env.io(), mine.acquire_all({"c", "d"}));
    BOOST_TEST(run_coro(env.io(), other.group(several.id()).release()).size() == 2U);
    for (const auto& report : run_coro(env.io(), several.release()))
        BOOST_TEST((report.status == errc::not_held));
    lock_group moved;
    moved = std::move(known);
    run_coro(env.io(), mine.group(moved.id()).release());
    BOOST_TEST((run_coro(env.io(), moved.release()).at(0).status == errc::not_held));
}

COLOCK_CONTRACT_CASE(locker, lock_extended_by_its_groups_id_is_released_by_its_handle, &capabilities::extends_groups)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto group = mine.group("g");
    // The first use takes longer than later ones, and must not use up the ttl.
    BOOST_TEST(!is_taken(env, other, "a"));
    run_coro(env.io(), group.acquire("a", {.ttl = env.short_ttl()}));
    BOOST_TEST(run_coro(env.io(), other.group("g").extend(1h)).size() == 1U);
    pass_slowly(env, env.short_ttl() * 3 / 2);
    BOOST_TEST(!group.held());
    BOOST_TEST(!is_taken(env, other, "a"));
}

COLOCK_CONTRACT_CASE(
    locker, group_by_id_extends_own_locks_and_those_of_others, &capabilities::extends_groups, &capabilities::list)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto group = mine.group("g"), theirs = other.group("g");
    BOOST_TEST((failure_of<extend_error>(env, group.extend(1h)) == errc::not_held));
    run_coro(env.io(), theirs.acquire("a", {.ttl = 1min}));
    run_coro(env.io(), group.acquire("b", {.ttl = 1min}));
    run_coro(env.io(), group.acquire("c", {.ttl = 1min}));
    const auto reports = run_coro(env.io(), group.extend(1h));
    BOOST_TEST_REQUIRE(reports.size() == 3U);
    BOOST_TEST(reports[0].key == "c");
    BOOST_TEST(reports[1].key == "b");
    BOOST_TEST(reports[2].key == "a");
    for (const auto& report : reports) {
        BOOST_TEST(!report.status);
        BOOST_TEST((report.before.remaining && *report.before.remaining <= 1min));
    }
    for (const auto& lock : group.locks()) {
        BOOST_TEST((lock.ttl() == 1h));
        BOOST_TEST((lock.expires_at() > lease_clock::now() + 50min));
    }
    // The handle does not know of the extension, and uses its own clock.
    BOOST_TEST((theirs.locks()[0].ttl() == 1min));
    for (const auto& status : run_coro(env.io(), mine.list({.group = "g"})))
        BOOST_TEST((*status.remaining > 50min));
    // The group may shorten the locks of its own handle.
    run_coro(env.io(), group.extend(30min));
    for (const auto& status : run_coro(env.io(), mine.list({.group = "g"})))
        BOOST_TEST((*status.remaining > 40min) == (status.key == "a"));
    for (const auto& lock : group.locks())
        BOOST_TEST((lock.expires_at() <= lease_clock::now() + 30min));
    // A lock that is gone is reported.
    run_coro(env.io(), other.break_lock("b"));
    const auto partial = run_coro(env.io(), group.extend(1h));
    BOOST_TEST_REQUIRE(partial.size() == 3U);
    BOOST_TEST((partial[1].key == "b" && partial[1].status == errc::not_held));
    BOOST_TEST(!partial[0].status);
    run_coro(env.io(), group.release());
    BOOST_TEST((failure_of<extend_error>(env, mine.group("g").extend(1h)) == errc::not_held));
}

COLOCK_CONTRACT_CASE(locker, a_group_with_a_member_without_ttl_is_not_extended, &capabilities::extends_groups,
    &capabilities::no_ttl, &capabilities::list)
{
    const auto mine = env.make_locker(), other = env.make_other_locker();
    auto group = mine.group("g"), theirs = other.group("g");
    run_coro(env.io(), theirs.acquire("a", {.ttl = 0ms}));
    run_coro(env.io(), group.acquire("b", {.ttl = 1min}));
    BOOST_TEST((failure_of<validation_error>(env, group.extend(1h)) == errc::invalid_ttl));
    BOOST_TEST((failure_of<validation_error>(env, group.extend(0ms)) == errc::invalid_ttl));
    BOOST_TEST((failure_of<validation_error>(env, mine.group("h").extend(-1ms)) == errc::invalid_ttl));
    BOOST_TEST((group.locks()[0].ttl() == 1min));
    BOOST_TEST((*run_coro(env.io(), mine.list({.key = "b"})).at(0).remaining <= 1min));
    run_coro(env.io(), group.release());
}

} // namespace colock::contract
