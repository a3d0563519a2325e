// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "contract.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace colock::contract {

namespace {

plain_claim_ptr member(std::string key, std::string group, std::chrono::milliseconds ttl = driver::long_ttl,
    lock_mode mode = lock_mode::exclusive)
{
    return new plain_claim({.key = std::move(key),
        .mode = mode,
        .ttl = ttl,
        .owner = std::make_shared<const owner_data>(owner_data{.owner = "me", .group = std::move(group)})});
}

void grant_concurrently(const driver& env, const std::vector<plain_claim_ptr>& all)
{
    std::size_t granted = 0;
    for (const auto& each : all) {
        env.backend().start_create(testing::sent_now(each),
            [&](const create_outcome& outcome) { granted += outcome.status == create_status::granted ? 1 : 0; });
    }
    testing::run_until(env.io(), [&] { return granted == all.size(); });
}

} // namespace

// Groups by their id.

COLOCK_CONTRACT_CASE(adapter, group_without_held_locks_is_empty, &capabilities::groups)
{
    const auto alone = env.exclusive("k");
    env.grant(alone);
    BOOST_TEST(env.release_group("nobody").empty());
    if (env.capabilities().extends_groups)
        BOOST_TEST(env.extend_group("nobody", 1h).empty());
    env.check_held(alone);
    env.release_held(alone);
}

COLOCK_CONTRACT_CASE(adapter, group_is_released_by_another_process_with_its_id, &capabilities::groups)
{
    const auto a = member("a", "g"), b = member("b", "g"), other = member("c", "h"), alone = member("d", "");
    const auto fence = env.grant(a);
    for (const auto& each : {b, other, alone})
        env.grant(each);
    const auto released = env.another().release_group("g");
    CHECK_KEYS(released, {"a", "b"});
    for (const auto& status : released) {
        BOOST_TEST(status.group == "g");
        BOOST_TEST(status.owner == "me");
        BOOST_TEST((status.mode == lock_mode::exclusive));
        if (env.capabilities().expires)
            BOOST_TEST((status.remaining && *status.remaining > driver::long_ttl / 2));
        if (status.key == "a")
            BOOST_TEST((status.fence == fence || (status.fence == 0 && !env.capabilities().lists_fence)));
    }
    env.check_not_held(a);
    env.check_not_held(b);
    env.check_held(other);
    env.check_held(alone);
    BOOST_TEST(env.release_group("g").empty());
    BOOST_TEST(env.release(a).status == release_status::not_held);
    env.abandon(b);
    const auto again = env.one_attempt("b");
    env.grant(again);
    env.release_held(again);
    CHECK_KEYS(env.release_group("h"), {"c"});
    env.abandon(other);
    env.release_held(alone);
}

COLOCK_CONTRACT_CASE(adapter, released_lock_belongs_to_no_group, &capabilities::groups)
{
    const auto first = member("k", "g");
    env.grant(first);
    env.release_held(first);
    const auto second = member("k", "h");
    env.grant(second);
    BOOST_TEST(env.release_group("g").empty());
    env.check_held(second);
    env.release_held(second);
    const auto abandoned = member("k", "g");
    env.grant(abandoned);
    env.abandon(abandoned);
    BOOST_TEST(env.release_group("g").empty());
}

COLOCK_CONTRACT_CASE(adapter, expired_lock_belongs_to_no_group, &capabilities::groups, &capabilities::expires)
{
    const auto brief = member("k", "g", env.short_ttl()), lasting = member("l", "g");
    env.grant(brief);
    env.grant(lasting);
    env.pass_time(env.short_ttl() * 11 / 10);
    const auto next = member("k", "h");
    env.grant(next);
    CHECK_KEYS(env.release_group("g"), {"l"});
    env.check_held(next);
    env.release_held(next);
    env.abandon(lasting);
    const auto last = member("m", "g", env.short_ttl());
    env.grant(last);
    env.pass_time(env.short_ttl() * 11 / 10);
    BOOST_TEST(env.release_group("g").empty());
}

COLOCK_CONTRACT_CASE(
    adapter, group_release_removes_only_holders_of_the_group, &capabilities::groups, &capabilities::shared)
{
    const auto mine = member("k", "g", driver::long_ttl, lock_mode::shared),
               second = member("k", "g", driver::long_ttl, lock_mode::shared),
               theirs = member("k", "h", driver::long_ttl, lock_mode::shared), nobodys = env.shared("k");
    for (const auto& each : {mine, theirs, second, nobodys})
        env.grant(each);
    CHECK_KEYS(env.release_group("g"), {"k", "k"});
    env.check_not_held(mine);
    env.check_not_held(second);
    env.check_held(theirs);
    env.check_held(nobodys);
    env.release_held(nobodys);
    const auto alone = env.release_group("h");
    BOOST_TEST_REQUIRE(alone.size() == 1U);
    BOOST_TEST((alone[0].mode == lock_mode::shared));
    env.check_not_held(theirs);
    for (const auto& each : {mine, theirs, second})
        env.abandon(each);
    const auto writer = env.one_attempt("k");
    env.grant(writer);
    env.release_held(writer);
}

COLOCK_CONTRACT_CASE(adapter, release_of_a_group_wakes_waiters, &capabilities::groups, &capabilities::events)
{
    const auto other = env.another();
    const auto held = member("k", "g"), next = env.exclusive("k");
    env.grant(held);
    auto waiting = other.start_acquire(next);
    env.pass_time(1ms);
    BOOST_TEST(!waiting.done());
    env.release_group("g");
    testing::run_until(env.io(), [&] { return waiting.done(); });
    other.release_held(next);
    env.abandon(held);
}

COLOCK_CONTRACT_CASE(
    adapter, locks_granted_together_belong_to_their_group, &capabilities::groups, &capabilities::create_all)
{
    const std::vector<plain_claim_ptr> all{
        member("{t}a", "g"), member("{t}b", "h"), member("{t}c", ""), member("{t}d", "g")};
    env.grant_all(all);
    CHECK_KEYS(env.release_group("g"), {"{t}a", "{t}d"});
    CHECK_KEYS(env.release_group("h"), {"{t}b"});
    env.check_held(all[2]);
    for (const auto& each : all)
        env.abandon(each);
}

COLOCK_CONTRACT_CASE(adapter, lock_granted_by_a_hand_over_belongs_to_its_group, &capabilities::groups)
{
    const auto first = member("k", "g"), second = member("k", "h"), third = member("k", ""), last = member("k", "g");
    env.grant(first);
    for (const auto& [held, next] : {std::pair(first, second), std::pair(second, third), std::pair(third, last)}) {
        env.check_refused(next);
        const auto outcome = env.hand_over(held, next);
        BOOST_TEST((outcome.created.status == create_status::granted));
        CHECK_KEYS(env.release_group(held->owner().group.empty() ? "nobody" : held->owner().group), {});
    }
    // A repeated grant belongs to its group, too.
    env.grant(last);
    CHECK_KEYS(env.release_group("g"), {"k"});
    env.check_not_held(last);
    env.abandon(last);
}

COLOCK_CONTRACT_CASE(
    adapter, group_is_extended_by_another_process_with_its_id, &capabilities::extends_groups, &capabilities::expires)
{
    const auto a = member("a", "g", env.short_ttl()), b = member("b", "g", env.short_ttl() * 2),
               other = member("c", "h", env.short_ttl()), longer = member("d", "g");
    // The first use takes longer than later ones, and must not use up the ttl.
    const auto another = env.another();
    another.check_not_held(a);
    for (const auto& each : {a, b, other, longer})
        env.grant(each);
    const auto extended = another.extend_group("g", driver::long_ttl / 2);
    CHECK_KEYS(extended, {"a", "b", "d"});
    for (const auto& status : extended) {
        BOOST_TEST_REQUIRE(status.remaining.has_value());
        // The result shows the status before the extension. The extension shortens no lease.
        BOOST_TEST((status.key == "d" || *status.remaining <= env.short_ttl() * 2));
    }
    BOOST_TEST((*env.inspect("d").at(0).remaining > driver::long_ttl * 3 / 4));
    env.pass_time(env.short_ttl() * 22 / 10);
    env.check_held(a);
    env.check_held(b);
    env.check_not_held(other);
    // The locks are still known as members.
    CHECK_KEYS(env.release_group("g"), {"a", "b", "d"});
    for (const auto& each : {a, b, longer})
        env.abandon(each);
}

COLOCK_CONTRACT_CASE(adapter, shared_members_are_extended_too, &capabilities::extends_groups, &capabilities::shared,
    &capabilities::expires)
{
    const auto alone = member("a", "g", env.short_ttl(), lock_mode::shared),
               mine = member("b", "g", env.short_ttl(), lock_mode::shared),
               theirs = member("b", "h", env.short_ttl(), lock_mode::shared);
    for (const auto& each : {alone, mine, theirs})
        env.grant(each);
    CHECK_KEYS(env.extend_group("g", 1h), {"a", "b"});
    env.pass_time(env.short_ttl() * 11 / 10);
    env.check_held(alone);
    env.check_held(mine);
    env.check_not_held(theirs);
    env.release_held(alone);
    env.release_held(mine);
    env.abandon(theirs);
}

COLOCK_CONTRACT_CASE(adapter, group_with_a_member_without_ttl_is_not_extended_by_id, &capabilities::extends_groups,
    &capabilities::no_ttl)
{
    for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
        if (mode == lock_mode::shared && !env.capabilities().shared)
            continue;
        const auto brief = member("a", "g", env.short_ttl()), eternal = member("b", "g", 0ms, mode),
                   last = member("c", "g", env.short_ttl());
        for (const auto& each : {brief, eternal, last})
            env.grant(each);
        const auto outcome = env.group("g", group_action::extend, 1h);
        BOOST_TEST_REQUIRE(outcome.error != nullptr);
        BOOST_TEST((outcome.error->code == errc::invalid_ttl));
        env.pass_time(env.short_ttl() * 11 / 10);
        env.check_not_held(brief);
        env.check_not_held(last);
        CHECK_KEYS(env.release_group("g"), {"b"});
        env.abandon(eternal);
    }
}

COLOCK_CONTRACT_CASE(adapter, a_groups_id_may_hold_any_bytes, &capabilities::groups)
{
    for (const auto& id :
        std::vector<std::string>{"..", "a/b", "100% *?[a]\\", "\x01\x7f\xff\xfe", "{x}~.g", std::string(256, '\xc3')})
    {
        const auto held = member("k", id), other = member("l", id + "x");
        env.grant(held);
        if (id.size() < 256)
            env.grant(other);
        const auto released = env.release_group(id);
        CHECK_KEYS(released, {"k"});
        BOOST_TEST(released.at(0).group == id);
        env.abandon(held);
        env.abandon(other);
    }
}

COLOCK_CONTRACT_CASE(adapter, large_group_is_extended_and_released_completely, &capabilities::groups)
{
    // More locks than any backend processes in one step, but few enough for a slow server to answer in time.
    const std::size_t size = env.capabilities().immediate ? 1000 : 300;
    std::vector<plain_claim_ptr> all;
    while (all.size() < size)
        all.push_back(member("k" + std::to_string(all.size()), "g"));
    grant_concurrently(env, all);
    if (env.capabilities().extends_groups)
        BOOST_TEST(env.extend_group("g", 2 * driver::long_ttl).size() == size);
    const auto released = env.release_group("g");
    BOOST_TEST(released.size() == size);
    const auto listed = keys_of(released);
    BOOST_TEST(std::set<std::string>(listed.begin(), listed.end()).size() == size);
    BOOST_TEST(env.release_group("g").empty());
    for (const auto& each : all)
        env.abandon(each);
}

COLOCK_CONTRACT_CASE(adapter, groups_match_the_held_locks_after_random_operations, &capabilities::groups)
{
    std::mt19937 random(11);
    std::map<std::string, plain_claim_ptr> held;
    const auto other = env.another();
    for (int n = 0; n < 300; ++n) {
        const auto key = "k" + std::to_string(random() % 6), group = "g" + std::to_string(random() % 3);
        const auto& by = random() % 2 ? other : static_cast<const driver&>(env);
        switch (random() % 4) {
        case 0: {
            keys expected;
            for (const auto& [name, each] : held) {
                if (each->owner().group == group)
                    expected.insert(name);
            }
            const auto released = by.release_group(group);
            CHECK_KEYS(released, expected);
            std::erase_if(held, [&](const auto& each) { return each.second->owner().group == group; });
            break;
        }
        case 1:
            if (const auto found = held.find(key); found != held.end()) {
                env.release_held(found->second);
                held.erase(found);
            }
            break;
        default:
            if (!held.contains(key)) {
                const auto granted = member(key, random() % 4 ? group : "");
                env.grant(granted);
                held[key] = granted;
            }
        }
    }
    for (const auto& [key, each] : held)
        env.release_held(each);
}

} // namespace colock::contract
