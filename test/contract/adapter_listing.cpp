// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Lists and inspections: what a status tells, filters, pages and cursors.
#include "contract.hpp"

#include <random>
#include <set>
#include <string>
#include <vector>

namespace colock::contract {

namespace {

claim_ptr described(std::string key, owner_data owner, std::chrono::milliseconds ttl = driver::long_ttl,
    lock_mode mode = lock_mode::exclusive)
{
    return new plain_claim({.key = std::move(key),
        .mode = mode,
        .ttl = ttl,
        .owner = std::make_shared<const owner_data>(std::move(owner))});
}

} // namespace

COLOCK_CONTRACT_CASE(adapter, status_names_the_holder, &capabilities::list)
{
    const auto claim = described("k", {.owner = "me", .host = "here", .comment = "for a test", .group = "g"});
    const auto fence = env.grant(claim);
    const auto statuses = env.inspect("k");
    BOOST_REQUIRE(statuses.size() == 1U);
    const auto& status = statuses[0];
    BOOST_TEST(status.key == "k");
    BOOST_TEST(status.owner == "me");
    BOOST_TEST(status.host == "here");
    BOOST_TEST(status.comment == "for a test");
    BOOST_TEST(status.group == "g");
    BOOST_TEST(status.mode == lock_mode::exclusive);
    BOOST_TEST((status.fence == fence || (status.fence == 0 && !env.capabilities().lists_fence)));
    BOOST_TEST(status.remaining.has_value() == env.capabilities().expires);
    if (status.remaining)
        BOOST_TEST((*status.remaining > env.long_ttl / 2 && *status.remaining <= env.long_ttl));
    if (status.created && status.renewed)
        BOOST_TEST((*status.created <= *status.renewed));
    env.release_held(claim);
}

COLOCK_CONTRACT_CASE(adapter, owner_data_comes_back_as_it_was, &capabilities::list)
{
    const owner_data odd{.owner = std::string(256, 'o'),
        .host = "a\"b'c\\d:e|f,g\n\r\t ",
        .comment = "{}[]()*?\x01\x7f \xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x92",
        .group = ""};
    const auto claim = described("k", odd);
    env.grant(claim);
    const auto statuses = env.inspect("k");
    BOOST_REQUIRE(statuses.size() == 1U);
    BOOST_TEST((owner_data{statuses[0].owner, statuses[0].host, statuses[0].comment, statuses[0].group} == odd));
    env.release_held(claim);
}

COLOCK_CONTRACT_CASE(adapter, a_status_never_holds_a_token, &capabilities::list)
{
    const auto claim = env.exclusive("k");
    env.grant(claim);
    const auto token = claim->token().hex();
    const auto statuses = env.inspect("k");
    BOOST_REQUIRE(statuses.size() == 1U);
    for (const auto& text :
        {statuses[0].key, statuses[0].owner, statuses[0].host, statuses[0].comment, statuses[0].group})
        BOOST_TEST(text.find(token) == std::string::npos);
    env.release_held(claim);
}

COLOCK_CONTRACT_CASE(adapter, an_extension_moves_renewed_and_remaining, &capabilities::list, &capabilities::expires)
{
    const auto claim = env.exclusive("k", env.short_ttl());
    env.grant(claim);
    const auto before = env.inspect("k").at(0);
    env.pass_time(env.short_ttl() / 4);
    env.extend(claim, env.long_ttl);
    const auto after = env.inspect("k").at(0);
    BOOST_REQUIRE((before.remaining && after.remaining));
    BOOST_TEST((*after.remaining > *before.remaining));
    BOOST_TEST(before.renewed.has_value() == after.renewed.has_value());
    if (before.renewed && after.renewed)
        BOOST_TEST((*after.renewed - *after.created > *before.renewed - *before.created));
    BOOST_TEST(after.fence == before.fence);
    env.release_held(claim);
}

COLOCK_CONTRACT_CASE(adapter, inspect_shows_the_live_holders_of_one_key, &capabilities::list, &capabilities::expires)
{
    BOOST_TEST(env.inspect("k").empty());
    const auto expired = env.exclusive("k", env.short_ttl()), other = env.exclusive("kk"), queued = env.exclusive("kk");
    env.grant(expired);
    env.grant(other);
    env.check_refused(queued);
    CHECK_KEYS(env.inspect("k"), {"k"});
    BOOST_TEST(env.inspect("kk").size() == 1U);
    env.pass_time(env.short_ttl());
    BOOST_TEST(env.inspect("k").empty());
    env.abandon(queued);
    env.release_held(other);
}

COLOCK_CONTRACT_CASE(
    adapter, inspect_shows_every_shared_holder, &capabilities::list, &capabilities::shared, &capabilities::expires)
{
    const auto brief = described("k", {.owner = "brief"}, env.short_ttl(), lock_mode::shared);
    const auto lasting = described("k", {.owner = "lasting"}, env.long_ttl, lock_mode::shared);
    env.grant(brief);
    const auto fence = env.grant(lasting);
    auto statuses = env.inspect("k");
    BOOST_TEST(statuses.size() == 2U);
    for (const auto& status : statuses)
        BOOST_TEST(status.mode == lock_mode::shared);
    env.pass_time(env.short_ttl());
    statuses = env.inspect("k");
    BOOST_REQUIRE(statuses.size() == 1U);
    BOOST_TEST(statuses[0].owner == "lasting");
    BOOST_TEST((statuses[0].fence == fence || (statuses[0].fence == 0 && !env.capabilities().lists_fence)));
    env.release_held(lasting);
}

COLOCK_CONTRACT_CASE(adapter, list_honours_every_field_of_its_filter, &capabilities::list)
{
    const std::vector<claim_ptr> claims{
        described("cart:1", {.owner = "ann", .group = "g1"}, 30min),
        described("cart:2", {.owner = "bob", .group = "g1"}, 60min),
        described("seat:1", {.owner = "ann", .group = "g2"}, 90min),
    };
    for (const auto& claim : claims)
        env.grant(claim);

    CHECK_KEYS(env.list(), {"cart:1", "cart:2", "seat:1"});
    CHECK_KEYS(env.list({.key = "cart:1"}), {"cart:1"});
    CHECK_KEYS(env.list({.key = "cart:"}), {});
    CHECK_KEYS(env.list({.key_prefix = "cart:"}), {"cart:1", "cart:2"});
    CHECK_KEYS(env.list({.key_prefix = ""}), {"cart:1", "cart:2", "seat:1"});
    CHECK_KEYS(env.list({.group = "g1"}), {"cart:1", "cart:2"});
    CHECK_KEYS(env.list({.group = "g"}), {});
    CHECK_KEYS(env.list({.owner = "ann"}), {"cart:1", "seat:1"});
    CHECK_KEYS(env.list({.mode = lock_mode::exclusive}), {"cart:1", "cart:2", "seat:1"});
    CHECK_KEYS(env.list({.mode = lock_mode::shared}), {});
    if (env.capabilities().expires) {
        CHECK_KEYS(env.list({.remaining_below = 45min}), {"cart:1"});
        CHECK_KEYS(env.list({.remaining_at_least = 45min}), {"cart:2", "seat:1"});
        CHECK_KEYS(env.list({.remaining_below = 75min, .remaining_at_least = 45min}), {"cart:2"});
    }
    CHECK_KEYS(env.list({.key_prefix = "cart:", .owner = "ann"}), {"cart:1"});
    CHECK_KEYS(env.list({.group = "g2", .owner = "bob"}), {});
    for (const auto& claim : claims)
        env.release_held(claim);
}

COLOCK_CONTRACT_CASE(adapter, list_distinguishes_shared_and_exclusive, &capabilities::list, &capabilities::shared)
{
    const auto writer = env.exclusive("w"), first = env.shared("r"), second = env.shared("r");
    env.grant(writer);
    env.grant(first);
    env.grant(second);
    CHECK_KEYS(env.list({.mode = lock_mode::exclusive}), {"w"});
    CHECK_KEYS(env.list({.mode = lock_mode::shared}), {"r", "r"});
    env.release_held(writer);
    env.release_held(first);
    env.release_held(second);
}

COLOCK_CONTRACT_CASE(adapter, list_filters_by_creation, &capabilities::list)
{
    const auto older = env.exclusive("older"), newer = env.exclusive("newer");
    env.grant(older);
    env.pass_time(env.short_ttl() / 10);
    env.grant(newer);
    const auto older_created = env.inspect("older").at(0).created, newer_created = env.inspect("newer").at(0).created;
    if (older_created && newer_created) {
        BOOST_TEST((*older_created < *newer_created));
        const auto between = *older_created + (*newer_created - *older_created) / 2;
        CHECK_KEYS(env.list({.created_before = between}), {"older"});
        CHECK_KEYS(env.list({.created_after = between}), {"newer"});
        CHECK_KEYS(env.list({.created_before = *newer_created + 1h, .created_after = *older_created - 1h}),
            {"older", "newer"});
    } else {
        // A creation time that is not stored satisfies no condition.
        BOOST_TEST(env.list({.created_after = std::chrono::system_clock::time_point::min()}).empty());
    }
    env.release_held(older);
    env.release_held(newer);
}

COLOCK_CONTRACT_CASE(adapter, list_shows_live_locks_only, &capabilities::list, &capabilities::expires)
{
    const auto expired = env.exclusive("expired", env.short_ttl()), live = env.exclusive("live");
    env.grant(expired);
    env.grant(live);
    CHECK_KEYS(env.list(), {"expired", "live"});
    env.pass_time(env.short_ttl());
    CHECK_KEYS(env.list(), {"live"});
    env.release_held(live);
    BOOST_TEST(env.list().empty());
}

COLOCK_CONTRACT_CASE(adapter, list_shows_the_locks_of_all_processes, &capabilities::list)
{
    const auto other = env.another();
    const auto mine = env.exclusive("mine"), others = env.exclusive("others");
    env.grant(mine);
    other.grant(others);
    CHECK_KEYS(env.list(), {"mine", "others"});
    CHECK_KEYS(other.list(), {"mine", "others"});
    env.release_held(mine);
    other.release_held(others);
}

COLOCK_CONTRACT_CASE(adapter, pages_contain_each_lock_once_and_honour_the_filter, &capabilities::list)
{
    std::vector<claim_ptr> claims;
    keys all, keys_of_ann;
    for (int i = 0; i < 400; ++i) {
        const bool is_owned_by_ann = i % 3 == 0;
        claims.push_back(
            described((i % 2 == 0 ? "even:" : "odd:") + std::to_string(i), {.owner = is_owned_by_ann ? "ann" : "bob"}));
        all.insert(claims.back()->key());
        if (is_owned_by_ann)
            keys_of_ann.insert(claims.back()->key());
        env.grant(claims.back());
    }
    const auto listed = env.list();
    BOOST_TEST(listed.size() == all.size());
    CHECK_KEYS(listed, all);
    const auto listed_for_ann = env.list({.owner = "ann"});
    BOOST_TEST(listed_for_ann.size() == keys_of_ann.size());
    CHECK_KEYS(listed_for_ann, keys_of_ann);
    filter odd_of_ann{.key_prefix = "odd:", .owner = "ann"};
    for (const auto& each : env.list(odd_of_ann))
        BOOST_TEST(odd_of_ann.matches(each), each.key);
    BOOST_TEST(env.list(odd_of_ann).size() == 67U);
    for (const auto& claim : claims)
        env.release_held(claim);
}

COLOCK_CONTRACT_CASE(adapter, pages_do_not_depend_on_locks_of_earlier_pages, &capabilities::list)
{
    std::vector<claim_ptr> claims;
    for (int i = 0; i < 300; ++i) {
        claims.push_back(env.exclusive("k" + std::to_string(i)));
        env.grant(claims.back());
    }
    // Locks that are granted or end meanwhile may be missing. Locks that stay are listed.
    std::set<std::string> listed;
    std::string cursor;
    int later = 0;
    do {
        const auto page = run_coro(env.io(), env.backend().listing({.cursor = cursor}));
        BOOST_REQUIRE(!page.error);
        listed.merge(keys_of(page.locks));
        cursor = page.next;
        for (int more = 0; more < 5; ++more) {
            claims.push_back(env.exclusive("later" + std::to_string(++later)));
            env.grant(claims.back());
        }
        env.release_held(claims.front());
        claims.erase(claims.begin());
    } while (!cursor.empty() && later < 3000);
    BOOST_TEST(cursor.empty());
    for (const auto& claim : claims) {
        if (claim->key().starts_with('k'))
            BOOST_TEST(listed.contains(claim->key()), claim->key());
        env.release_held(claim);
    }
}

COLOCK_CONTRACT_CASE(adapter, a_cursor_may_be_anything, &capabilities::list)
{
    const auto claim = env.exclusive("k");
    env.grant(claim);
    const std::vector<std::string> named{"memory:0", "memory:15", "memory:99999999999", "memory:256", "memory:-1",
        "redis:0", "redis:1", "redis:18446744073709551616", "mongodb:tk", "mongodb:b\xff", "mongodb:t\xff",
        "zookeeper:00", "zookeeper:ffk", "zookeeper:fg", "zookeeper:7f../..", std::string(100'000, 'x'),
        std::string(8, '\0')};
    std::minstd_rand random(17);
    std::vector<std::string> cursors = named;
    for (const auto& each : named) {
        for (int i = 0; i < 10; ++i) {
            auto& changed = cursors.emplace_back(each.substr(0, 40));
            changed[random() % changed.size()] = static_cast<char>(random());
            if (random() % 2 == 0)
                changed.resize(random() % changed.size());
        }
    }
    for (const auto& cursor : cursors) {
        BOOST_TEST_CONTEXT("cursor " << cursor.substr(0, 40))
        {
            for (const auto& which : {filter{}, filter{.key = "k"}}) {
                const auto page = run_coro(env.io(), env.backend().listing({.filter = which, .cursor = cursor}));
                BOOST_TEST((!page.error || page.error->code == errc::invalid_options));
                BOOST_TEST(page.locks.size() <= 1U);
            }
            const auto purged = run_coro(
                env.io(), env.backend().listing({.action = listing_action::purge, .cursor = cursor, .limit = 1}));
            BOOST_TEST((!purged.error || purged.error->code == errc::invalid_options));
            BOOST_TEST(purged.locks.empty());
        }
    }
    env.release_held(claim);
}

} // namespace colock::contract
