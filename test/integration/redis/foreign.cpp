// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Keys of other programs with the same prefix are refused, not listed, and never changed.
#include "served.hpp"
#include "support/print.hpp"

#include <colock/locker.hpp>

#include <boost/test/unit_test.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {

BOOST_AUTO_TEST_SUITE(redis_foreign_keys)

namespace {

constexpr auto lock_name = "{colock}:k";
constexpr auto index_name = "{colock}#g:g";

struct foreign_value
{
    const char* name;
    /// Lua code that stores the value under KEYS[1].
    const char* store;
};

constexpr foreign_value not_sorted_sets[] = {
    {"list", "redis.call('RPUSH', KEYS[1], 'a', 'b')"},
    {"hash", "redis.call('HSET', KEYS[1], 'a', '1')"},
    {"set", "redis.call('SADD', KEYS[1], 'a', 'b')"},
    {"stream", "redis.call('XADD', KEYS[1], '1-1', 'a', '1')"},
};
constexpr foreign_value sorted_sets[] = {
    {"members with small scores", "redis.call('ZADD', KEYS[1], 100, 'alice', 200, 'bob')"},
    {"members with great scores", "redis.call('ZADD', KEYS[1], 9e15, 'alice', 'inf', 'bob')"},
    {"an empty member", "redis.call('ZADD', KEYS[1], 1, '')"},
    {"members like tokens", "redis.call('ZADD', KEYS[1], 1, string.rep('a', 32), 2, string.rep('b', 64))"},
    {"members like intents",
        "redis.call('ZADD', KEYS[1], -9e15, 'w' .. string.rep('a', 33), 1, 'w' .. string.rep('a', 31))"},
    {"a member behind an intent", "redis.call('ZADD', KEYS[1], -9e15, 'w' .. string.rep('a', 32), 2, 'alice')"},
    {"members like digests", "redis.call('ZADD', KEYS[1], 5, string.rep('d', 40), 6, string.rep('e', 64))"},
    {"members that begin like readers", "redis.call('ZADD', KEYS[1], 1, 's' .. string.rep('a', 43))"},
    {"a member before a reader",
        "redis.call('ZADD', KEYS[1], 1, 'alice', 9e15, 's' .. string.rep('a', 43) .. '\\0\\0\\0')"},
    {"a member behind an expired reader",
        "redis.call('ZADD', KEYS[1], 1, 's' .. string.rep('a', 43) .. '\\0\\0\\0', 2, 'alice')"},
    {"a member behind a reader", "redis.call('ZADD', KEYS[1], 8e15, 's' .. string.rep('a', 43) .. '\\0\\0\\0', 9e15, "
                                 "'alice')"},
};
/// The check of the first and the last member does not find this value. Expired members of colock are removed, the
/// foreign member stays.
constexpr foreign_value between_readers{"a member between expired readers",
    "redis.call('ZADD', KEYS[1], 1, 's' .. string.rep('a', 43) .. '\\0\\0\\0', 2, 'alice', 3, 's' .. "
    "string.rep('b', 43) .. '\\0\\0\\0')"};
constexpr foreign_value strings[] = {
    {"text", "redis.call('SET', KEYS[1], 'hello')"},
    {"nothing", "redis.call('SET', KEYS[1], '')"},
    {"text with a ttl", "redis.call('SET', KEYS[1], 'hello', 'PX', 3600000)"},
    {"a number", "redis.call('SET', KEYS[1], '17')"},
    {"another's token", "redis.call('SET', KEYS[1], string.rep('a', 32))"},
    {"a digest", "redis.call('SET', KEYS[1], string.rep('0123456789abcdef', 4))"},
    {"what begins like a reader", "redis.call('SET', KEYS[1], 's' .. string.rep('a', 43) .. 'me')"},
};

/// All foreign values for keys of the standard layout.
std::vector<foreign_value> all_foreign_values()
{
    std::vector<foreign_value> all(std::begin(not_sorted_sets), std::end(not_sorted_sets));
    all.insert(all.end(), std::begin(sorted_sets), std::end(sorted_sets));
    all.insert(all.end(), std::begin(strings), std::end(strings));
    return all;
}

plain_claim_ptr claim_of(lock_mode mode, std::string group = {}, std::string key = "k", std::size_t max_holders = 0)
{
    const auto owner = std::make_shared<const owner_data>(owner_data{"me", "here", "", std::move(group)});
    return plain_claim_ptr(new plain_claim({.key = std::move(key),
        .mode = mode,
        .max_holders = max_holders,
        .ttl = driver::long_ttl,
        .keeps_place = true,
        .owner = owner}));
}

void check_refused(const failure_ptr& why)
{
    BOOST_TEST_REQUIRE(why);
    BOOST_TEST(why->code == errc::misconfigured_backend);
    BOOST_TEST(why->detail.find("WRONGTYPE") != std::string::npos, why->detail);
}

/// Stores a foreign value in a key and checks later whether it was changed.
struct foreign_key
{
    foreign_key(redis_server& env, const foreign_value& value, std::string under = lock_name)
        : server(env), name(std::move(under))
    {
        server({"DEL", name});
        server({"EVAL", value.store, "1", name});
        before = content();
        BOOST_TEST_REQUIRE(before != "(nil)");
        has_ttl = server({"PTTL", name}) != "-1";
    }
    void check_unchanged(const char* by)
    {
        BOOST_TEST(content() == before, name << " was changed by " << by);
        BOOST_TEST((server({"PTTL", name}) != "-1") == has_ttl, "the expiry of " << name << " was changed by " << by);
    }
    [[nodiscard]] std::string content() { return server({"DUMP", name}); }

    redis_server& server;
    const std::string name;
    std::string before;
    bool has_ttl = false;
};

/// Tries every way to acquire a lock whose key has a foreign value.
void check_acquires_are_refused(served& f, foreign_key& theirs)
{
    for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
        for (const std::size_t max_holders : {0U, 3U}) {
            for (const char* const group : {"", "other"}) {
                const auto claim = claim_of(mode, group, "k", mode == lock_mode::shared ? max_holders : 0);
                const auto outcome = f.test_driver->create(claim);
                BOOST_TEST((outcome.status == create_status::failed));
                check_refused(outcome.error);
                theirs.check_unchanged("an acquire");
                f.test_driver->abandon(claim);
                theirs.check_unchanged("an abandon");
            }
        }
    }
    const auto several = f.test_driver->create_all({claim_of(lock_mode::exclusive), driver::exclusive("l")});
    BOOST_TEST((several.status == create_status::failed));
    check_refused(several.refusal.error);
    theirs.check_unchanged("an acquire of several");
    BOOST_TEST(f.raw({"EXISTS", "{colock}:l"}) == "0");
}

/// Calls all operations of a holder whose lock was replaced by a foreign value.
void check_holders_change_nothing(served& f, const foreign_value& value)
{
    using use = std::function<void(const plain_claim_ptr&)>;
    const std::vector<std::pair<const char*, use>> uses{
        {"an extension",
            [&](const auto& held) {
                BOOST_TEST((f.test_driver->extend(held, 1min).status != extend_status::extended));
            }},
        {"a look", [&](const auto& held) { BOOST_TEST(!f.test_driver->valid(held).valid); }},
        {"an adoption",
            [&](const auto& held) {
                const auto next = claim_of(held->mode(), held->owner().group);
                const auto adopted = f.test_driver->adopt(f.test_driver->export_ticket(held), next);
                BOOST_TEST((adopted.status != create_status::granted));
            }},
        {"a hand-over",
            [&](const auto& held) {
                if (held->mode() == lock_mode::exclusive) {
                    const auto outcome =
                        f.test_driver->hand_over(held, claim_of(lock_mode::exclusive, held->owner().group));
                    BOOST_TEST((outcome.created.status == create_status::failed));
                }
            }},
        {"a release",
            [&](const auto& held) { BOOST_TEST((f.test_driver->release(held).status != release_status::released)); }},
        {"an extension of its group", [&](const auto&) { BOOST_TEST(f.test_driver->extend_group("g", 2h).empty()); }},
        {"a release of its group", [&](const auto&) { BOOST_TEST(f.test_driver->release_group("g").empty()); }},
    };
    for (const auto& [name, ask] : uses) {
        for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
            for (const char* const group : {"", "g"}) {
                f.raw({"FLUSHALL"});
                const auto held = claim_of(mode, group), second = claim_of(lock_mode::shared, group);
                f.test_driver->grant(held);
                if (mode == lock_mode::shared)
                    f.test_driver->grant(second);
                foreign_key theirs(f.server, value);
                ask(held);
                theirs.check_unchanged(name);
            }
        }
    }
}

} // namespace

BOOST_AUTO_TEST_CASE(foreign_value_is_refused_by_every_acquire_and_unchanged)
{
    served f;
    for (const auto& value : all_foreign_values()) {
        BOOST_TEST_CONTEXT(value.name)
        {
            f.raw({"FLUSHALL"});
            foreign_key theirs(f.server, value);
            check_acquires_are_refused(f, theirs);
        }
    }
}

BOOST_AUTO_TEST_CASE(foreign_value_in_place_of_a_lock_is_not_changed_by_its_former_holder)
{
    served f;
    for (const auto& value : all_foreign_values()) {
        BOOST_TEST_CONTEXT(value.name)
        {
            check_holders_change_nothing(f, value);
        }
    }
}

BOOST_AUTO_TEST_CASE(foreign_value_is_not_listed_purged_or_broken)
{
    served f;
    for (const auto& value : all_foreign_values()) {
        BOOST_TEST_CONTEXT(value.name)
        {
            f.raw({"FLUSHALL"});
            foreign_key theirs(f.server, value);
            BOOST_TEST(f.test_driver->inspect("k").empty());
            BOOST_TEST(f.test_driver->list({.key = "k"}).empty());
            BOOST_TEST(f.test_driver->list().empty());
            theirs.check_unchanged("a list");
            check_refused(run_coro(
                f.io, f.test_driver->backend().listing({.action = listing_action::break_key, .filter = {.key = "k"}}))
                    .error);
            theirs.check_unchanged("a break");
            BOOST_TEST(f.test_driver->purge().empty());
            theirs.check_unchanged("a purge");
        }
    }
}

BOOST_AUTO_TEST_CASE(foreign_member_among_expired_readers_stays)
{
    const std::vector<std::pair<const char*, std::function<void(served&)>>> uses{
        {"purge", [](served& f) { BOOST_TEST(f.test_driver->purge().size() == 2u); }},
        {"exclusive acquire", [](served& f) { f.test_driver->create(claim_of(lock_mode::exclusive)); }},
        {"shared acquire", [](served& f) { f.test_driver->create(claim_of(lock_mode::shared)); }},
        {"semaphore", [](served& f) { f.test_driver->create(claim_of(lock_mode::shared, {}, "k", 3)); }},
        {"acquire of several",
            [](served& f) { f.test_driver->create_all({claim_of(lock_mode::exclusive), driver::exclusive("l")}); }},
        {"break",
            [](served& f) {
                static_cast<void>(run_coro(f.io,
                    f.test_driver->backend().listing({.action = listing_action::break_key, .filter = {.key = "k"}})));
            }},
    };
    served f;
    for (const auto& [name, ask] : uses) {
        BOOST_TEST_CONTEXT(name)
        {
            f.raw({"FLUSHALL"});
            foreign_key theirs(f.server, between_readers);
            ask(f);
            BOOST_TEST(f.raw({"ZSCORE", lock_name, "alice"}) == "2");
            BOOST_TEST(f.raw({"PTTL", lock_name}) == "-1");
        }
    }
}

BOOST_AUTO_TEST_CASE(background_purge_leaves_foreign_values_alone)
{
    redis_server server;
    asio::io_context io;
    std::vector<foreign_key> theirs;
    int count = 0;
    for (const auto& value : all_foreign_values()) {
        theirs.emplace_back(server, value, "{colock}:" + std::to_string(++count));
    }
    server({"EVAL", "redis.call('ZADD', KEYS[1], 1, 's' .. string.rep('a', 43) .. '\\0\\0\\0')", "1", lock_name});
    locker purging(redis::make_adapter(io.get_executor(), {.url = server.url()}),
        {.purge = background_purge{.interval = 100ms, .limit = 1000}});
    // The background purge begins with the first use.
    run_coro(io, run_coro(io, purging.acquire("first")).release());
    run_until(io, [&] { return server({"EXISTS", lock_name}) == "0"; });
    for (auto& each : theirs)
        each.check_unchanged("a background purge");
    run_coro(io, purging.shutdown());
}

BOOST_AUTO_TEST_CASE(set_is_recognized_if_its_first_or_last_member_is_an_intent)
{
    served f;
    for (const bool has_reader : {false, true}) {
        f.raw({"FLUSHALL"});
        f.raw({"ZADD", lock_name, "-9e15", 'w' + std::string(32, 'a'), "-8e15", 'w' + std::string(32, 'b')});
        if (has_reader)
            f.raw({"ZADD", lock_name, "9e15", stored_holder('c', true)});
        f.test_driver->check_refused(claim_of(lock_mode::shared));
        BOOST_TEST(f.test_driver->break_key("k").size() == (has_reader ? 1u : 0u));
        f.test_driver->grant(claim_of(lock_mode::exclusive));
    }
    // The token of an intent has another length, so the set is foreign.
    f.raw({"FLUSHALL"});
    f.raw({"ZADD", lock_name, "-9e15", 'w' + std::string(31, 'a')});
    check_refused(f.test_driver->create(claim_of(lock_mode::shared)).error);
    check_refused(f.test_driver->create(claim_of(lock_mode::exclusive)).error);
}

BOOST_AUTO_TEST_CASE(foreign_group_index_is_refused_and_unchanged)
{
    served f;
    for (const auto& value : all_foreign_values()) {
        BOOST_TEST_CONTEXT(value.name)
        {
            f.raw({"FLUSHALL"});
            foreign_key theirs(f.server, value, index_name);
            for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
                const auto claim = claim_of(mode, "g");
                BOOST_TEST((f.test_driver->create(claim).status == create_status::failed));
                theirs.check_unchanged("an acquire");
                f.test_driver->abandon(claim);
                theirs.check_unchanged("an abandon");
            }
            BOOST_TEST(
                (f.test_driver->create_all({claim_of(lock_mode::exclusive, "g"), driver::exclusive("l")}).status ==
                    create_status::failed));
            theirs.check_unchanged("an acquire of several");
            BOOST_TEST(f.raw({"KEYS", "{colock}:*"}).empty());
            for (const auto what : {group_action::release, group_action::extend}) {
                static_cast<void>(f.test_driver->group("g", what, 1min));
                theirs.check_unchanged("an action on the group");
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(foreign_fence_counter_is_refused_and_unchanged)
{
    for (const auto& value : {not_sorted_sets[0], sorted_sets[0], strings[0], strings[2]}) {
        BOOST_TEST_CONTEXT(value.name)
        {
            redis_server server;
            foreign_key theirs(server, value, "{colock}#fence");
            client_side client({.url = server.url(), .operation_timeout = 500ms});
            BOOST_TEST((client.test_driver.create(driver::exclusive("k")).status == create_status::failed));
            theirs.check_unchanged("an acquire");
            BOOST_TEST(server({"EXISTS", lock_name}) == "0");
        }
    }
}

BOOST_AUTO_TEST_CASE(plain_layout_takes_any_string_for_a_holder_and_refuses_other_types)
{
    served f({.prefix = "app:", .layout = redis::layout::plain});
    for (const auto& value : strings) {
        BOOST_TEST_CONTEXT(value.name)
        {
            foreign_key theirs(f.server, value, "app:k");
            f.test_driver->check_refused(driver::exclusive("k"));
            theirs.check_unchanged("an acquire");
            BOOST_TEST(f.test_driver->list().size() == 1u);
            BOOST_TEST(f.test_driver->inspect("k").size() == 1u);
            BOOST_TEST(f.test_driver->purge().empty());
            theirs.check_unchanged("a purge");
            BOOST_TEST(f.test_driver->break_key("k").size() == 1u);
            BOOST_TEST(f.raw({"EXISTS", "app:k"}) == "0");
        }
    }
    std::vector<foreign_value> others(std::begin(not_sorted_sets), std::end(not_sorted_sets));
    others.insert(others.end(), std::begin(sorted_sets), std::end(sorted_sets));
    for (const auto& value : others) {
        BOOST_TEST_CONTEXT(value.name)
        {
            f.raw({"DEL", "app:k"});
            const auto held = driver::exclusive("k");
            f.test_driver->grant(held);
            foreign_key theirs(f.server, value, "app:k");
            check_refused(f.test_driver->create(driver::exclusive("k")).error);
            BOOST_TEST((f.test_driver->extend(held, 1min).status == extend_status::not_held));
            f.test_driver->check_not_held(held);
            BOOST_TEST((f.test_driver->release(held).status == release_status::not_held));
            BOOST_TEST(f.test_driver->inspect("k").empty());
            BOOST_TEST(f.test_driver->list().empty());
            check_refused(run_coro(
                f.io, f.test_driver->backend().listing({.action = listing_action::break_key, .filter = {.key = "k"}}))
                    .error);
            BOOST_TEST(f.test_driver->purge().empty());
            theirs.check_unchanged("an operation");
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
