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

void grant_concurrently(const driver& on, const std::vector<plain_claim_ptr>& all)
{
    std::size_t granted = 0;
    for (const auto& each : all) {
        on.backend().start_create(testing::sent_now(each),
            [&](const create_outcome& outcome) { granted += outcome.status == create_status::granted ? 1 : 0; });
    }
    testing::run_until(on.io(), [&] { return granted == all.size(); });
}

} // namespace

// Groups by their id.

COLOCK_CONTRACT_CASE(adapter, group_without_held_locks_is_empty, &capabilities::groups)
{
    const auto alone = on.exclusive("k");
    on.grant(alone);
    BOOST_TEST(on.release_group("nobody").empty());
    if (on.able().extends_groups)
        BOOST_TEST(on.extend_group("nobody", 1h).empty());
    on.check_held(alone);
    on.release_held(alone);
}

COLOCK_CONTRACT_CASE(adapter, group_is_released_by_another_process_with_its_id, &capabilities::groups)
{
    const auto a = member("a", "g"), b = member("b", "g"), other = member("c", "h"), alone = member("d", "");
    const auto fence = on.grant(a);
    for (const auto& each : {b, other, alone})
        on.grant(each);
    const auto released = on.another().release_group("g");
    CHECK_KEYS(released, {"a", "b"});
    for (const auto& status : released) {
        BOOST_TEST(status.group == "g");
        BOOST_TEST(status.owner == "me");
        BOOST_TEST((status.mode == lock_mode::exclusive));
        if (on.able().expires)
            BOOST_TEST((status.remaining && *status.remaining > driver::long_ttl / 2));
        if (status.key == "a")
            BOOST_TEST((status.fence == fence || status.fence == 0));
    }
    on.check_not_held(a);
    on.check_not_held(b);
    on.check_held(other);
    on.check_held(alone);
    BOOST_TEST(on.release_group("g").empty());
    BOOST_TEST(on.release(a).status == release_status::not_held);
    on.abandon(b);
    const auto again = on.one_attempt("b");
    on.grant(again);
    on.release_held(again);
    CHECK_KEYS(on.release_group("h"), {"c"});
    on.abandon(other);
    on.release_held(alone);
}

COLOCK_CONTRACT_CASE(adapter, released_lock_belongs_to_no_group, &capabilities::groups)
{
    const auto first = member("k", "g");
    on.grant(first);
    on.release_held(first);
    const auto second = member("k", "h");
    on.grant(second);
    BOOST_TEST(on.release_group("g").empty());
    on.check_held(second);
    on.release_held(second);
    const auto abandoned = member("k", "g");
    on.grant(abandoned);
    on.abandon(abandoned);
    BOOST_TEST(on.release_group("g").empty());
}

COLOCK_CONTRACT_CASE(adapter, expired_lock_belongs_to_no_group, &capabilities::groups, &capabilities::expires)
{
    const auto brief = member("k", "g", on.short_ttl()), lasting = member("l", "g");
    on.grant(brief);
    on.grant(lasting);
    on.pass_time(on.short_ttl() * 11 / 10);
    const auto next = member("k", "h");
    on.grant(next);
    CHECK_KEYS(on.release_group("g"), {"l"});
    on.check_held(next);
    on.release_held(next);
    on.abandon(lasting);
    const auto last = member("m", "g", on.short_ttl());
    on.grant(last);
    on.pass_time(on.short_ttl() * 11 / 10);
    BOOST_TEST(on.release_group("g").empty());
}

COLOCK_CONTRACT_CASE(
    adapter, group_release_removes_only_holders_of_the_group, &capabilities::groups, &capabilities::shared)
{
    const auto mine = member("k", "g", driver::long_ttl, lock_mode::shared),
               second = member("k", "g", driver::long_ttl, lock_mode::shared),
               theirs = member("k", "h", driver::long_ttl, lock_mode::shared), nobodys = on.shared("k");
    for (const auto& each : {mine, theirs, second, nobodys})
        on.grant(each);
    CHECK_KEYS(on.release_group("g"), {"k", "k"});
    on.check_not_held(mine);
    on.check_not_held(second);
    on.check_held(theirs);
    on.check_held(nobodys);
    on.release_held(nobodys);
    const auto alone = on.release_group("h");
    BOOST_TEST_REQUIRE(alone.size() == 1U);
    BOOST_TEST((alone[0].mode == lock_mode::shared));
    on.check_not_held(theirs);
    for (const auto& each : {mine, theirs, second})
        on.abandon(each);
    const auto writer = on.one_attempt("k");
    on.grant(writer);
    on.release_held(writer);
}

COLOCK_CONTRACT_CASE(adapter, release_of_a_group_wakes_waiters, &capabilities::groups, &capabilities::events)
{
    const auto other = on.another();
    const auto held = member("k", "g"), next = on.exclusive("k");
    on.grant(held);
    auto waiting = other.start_acquire(next);
    on.pass_time(1ms);
    BOOST_TEST(!waiting.done());
    on.release_group("g");
    testing::run_until(on.io(), [&] { return waiting.done(); });
    other.release_held(next);
    on.abandon(held);
}

COLOCK_CONTRACT_CASE(
    adapter, locks_granted_together_belong_to_their_group, &capabilities::groups, &capabilities::several)
{
    const std::vector<plain_claim_ptr> all{member("a", "g"), member("b", "h"), member("c", ""), member("d", "g")};
    on.grant_all(all);
    CHECK_KEYS(on.release_group("g"), {"a", "d"});
    CHECK_KEYS(on.release_group("h"), {"b"});
    on.check_held(all[2]);
    for (const auto& each : all)
        on.abandon(each);
}

COLOCK_CONTRACT_CASE(adapter, lock_granted_by_a_hand_over_belongs_to_its_group, &capabilities::groups)
{
    const auto first = member("k", "g"), second = member("k", "h"), third = member("k", ""), last = member("k", "g");
    on.grant(first);
    for (const auto& [held, next] : {std::pair(first, second), std::pair(second, third), std::pair(third, last)}) {
        on.refuse(next);
        const auto outcome = on.hand_over(held, next);
        BOOST_TEST((outcome.created.status == create_status::granted));
        CHECK_KEYS(on.release_group(held->owner().group.empty() ? "nobody" : held->owner().group), {});
    }
    // A repeated grant belongs to its group, too.
    on.grant(last);
    CHECK_KEYS(on.release_group("g"), {"k"});
    on.check_not_held(last);
    on.abandon(last);
}

COLOCK_CONTRACT_CASE(
    adapter, group_is_extended_by_another_process_with_its_id, &capabilities::extends_groups, &capabilities::expires)
{
    const auto a = member("a", "g", on.short_ttl()), b = member("b", "g", on.short_ttl() * 2),
               other = member("c", "h", on.short_ttl()), longer = member("d", "g");
    for (const auto& each : {a, b, other, longer})
        on.grant(each);
    const auto extended = on.another().extend_group("g", driver::long_ttl / 2);
    CHECK_KEYS(extended, {"a", "b", "d"});
    for (const auto& status : extended) {
        BOOST_TEST_REQUIRE(status.remaining.has_value());
        // The result shows the status before the extension. The extension shortens no lease.
        BOOST_TEST((status.key == "d" || *status.remaining <= on.short_ttl() * 2));
    }
    BOOST_TEST((*on.inspect("d").at(0).remaining > driver::long_ttl * 3 / 4));
    on.pass_time(on.short_ttl() * 22 / 10);
    on.check_held(a);
    on.check_held(b);
    on.check_not_held(other);
    // The locks are still known as members.
    CHECK_KEYS(on.release_group("g"), {"a", "b", "d"});
    for (const auto& each : {a, b, longer})
        on.abandon(each);
}

COLOCK_CONTRACT_CASE(adapter, shared_members_are_extended_too, &capabilities::extends_groups, &capabilities::shared,
    &capabilities::expires)
{
    const auto alone = member("a", "g", on.short_ttl(), lock_mode::shared),
               mine = member("b", "g", on.short_ttl(), lock_mode::shared),
               theirs = member("b", "h", on.short_ttl(), lock_mode::shared);
    for (const auto& each : {alone, mine, theirs})
        on.grant(each);
    CHECK_KEYS(on.extend_group("g", 1h), {"a", "b"});
    on.pass_time(on.short_ttl() * 11 / 10);
    on.check_held(alone);
    on.check_held(mine);
    on.check_not_held(theirs);
    on.release_held(alone);
    on.release_held(mine);
    on.abandon(theirs);
}

COLOCK_CONTRACT_CASE(adapter, group_with_a_member_without_ttl_is_not_extended_by_id, &capabilities::extends_groups,
    &capabilities::no_ttl)
{
    for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
        if (mode == lock_mode::shared && !on.able().shared)
            continue;
        const auto brief = member("a", "g", on.short_ttl()), eternal = member("b", "g", 0ms, mode),
                   last = member("c", "g", on.short_ttl());
        for (const auto& each : {brief, eternal, last})
            on.grant(each);
        const auto outcome = on.group("g", group_action::extend, 1h);
        BOOST_TEST_REQUIRE(outcome.error != nullptr);
        BOOST_TEST((outcome.error->code == errc::invalid_ttl));
        on.pass_time(on.short_ttl() * 11 / 10);
        on.check_not_held(brief);
        on.check_not_held(last);
        CHECK_KEYS(on.release_group("g"), {"b"});
        on.abandon(eternal);
    }
}

COLOCK_CONTRACT_CASE(adapter, a_groups_id_may_hold_any_bytes, &capabilities::groups)
{
    for (const auto& id :
        std::vector<std::string>{"..", "a/b", "100% *?[a]\\", "\x01\x7f\xff\xfe", "{x}~.g", std::string(256, '\xc3')})
    {
        const auto held = member("k", id), other = member("l", id + "x");
        on.grant(held);
        if (id.size() < 256)
            on.grant(other);
        const auto released = on.release_group(id);
        CHECK_KEYS(released, {"k"});
        BOOST_TEST(released.at(0).group == id);
        on.abandon(held);
        on.abandon(other);
    }
}

COLOCK_CONTRACT_CASE(adapter, large_group_is_extended_and_released_completely, &capabilities::groups)
{
    // More locks than any backend processes in one step, but few enough for a slow server to answer in time.
    const std::size_t size = on.able().immediate ? 1000 : 300;
    std::vector<plain_claim_ptr> all;
    while (all.size() < size)
        all.push_back(member("k" + std::to_string(all.size()), "g"));
    grant_concurrently(on, all);
    if (on.able().extends_groups)
        BOOST_TEST(on.extend_group("g", 2 * driver::long_ttl).size() == size);
    const auto released = on.release_group("g");
    BOOST_TEST(released.size() == size);
    const auto listed = keys_of(released);
    BOOST_TEST(std::set<std::string>(listed.begin(), listed.end()).size() == size);
    BOOST_TEST(on.release_group("g").empty());
    for (const auto& each : all)
        on.abandon(each);
}

COLOCK_CONTRACT_CASE(adapter, groups_match_the_held_locks_after_random_operations, &capabilities::groups)
{
    std::mt19937 random(11);
    std::map<std::string, plain_claim_ptr> held;
    const auto other = on.another();
    for (int n = 0; n < 300; ++n) {
        const auto key = "k" + std::to_string(random() % 6), group = "g" + std::to_string(random() % 3);
        const auto& by = random() % 2 ? other : static_cast<const driver&>(on);
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
                on.release_held(found->second);
                held.erase(found);
            }
            break;
        default:
            if (!held.contains(key)) {
                const auto granted = member(key, random() % 4 ? group : "");
                on.grant(granted);
                held[key] = granted;
            }
        }
    }
    for (const auto& [key, each] : held)
        on.release_held(each);
}

} // namespace colock::contract
