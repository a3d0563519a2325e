// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Groups whose locks are on several masters, and their index, which is in its own slot.
#include "cluster.hpp"
#include "integration/redis/fixture.hpp"
#include "links.hpp"

#include <colock/locker.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {

BOOST_AUTO_TEST_SUITE(redis_cluster_groups)

namespace {

constexpr auto index_name = "colock#g:g";

redis_cluster& shared_cluster()
{
    static redis_cluster servers;
    servers.clear();
    return servers;
}

plain_claim_ptr member(
    std::string key, std::chrono::milliseconds ttl = driver::long_ttl, lock_mode mode = lock_mode::exclusive)
{
    return new plain_claim({.key = std::move(key),
        .mode = mode,
        .ttl = ttl,
        .owner = std::make_shared<const owner_data>(owner_data{.group = "g"})});
}

std::string at_index(redis_cluster& servers, const std::string& command, const std::string& argument = {})
{
    auto& owner = servers.node(servers.owner_of(index_name));
    return argument.empty() ? owner({command, index_name}) : owner({command, index_name, argument});
}

/// Names of the indexes of all groups.
std::vector<std::string> index_names(redis_cluster& servers)
{
    auto all = servers.keys();
    std::erase_if(all, [](const std::string& name) { return !name.starts_with("colock#g:"); });
    return all;
}

/// Entries are removed in the background.
void wait_for_entries(client_side& client, redis_cluster& servers, const std::string& count)
{
    for (int i = 0; i < 500 && at_index(servers, "ZCARD") != count; ++i)
        client.run_for(10ms);
    BOOST_TEST(at_index(servers, "ZCARD") == count);
}

bool has_entry(redis_cluster& servers, const plain_claim_ptr& claim)
{
    return at_index(servers, "ZSCORE", claim->token().hex() + "colock:" + claim->key()) != "(nil)";
}

/// Claims of 30 keys, which are on all masters.
std::vector<plain_claim_ptr> thirty_members(std::chrono::milliseconds ttl = driver::long_ttl)
{
    std::vector<plain_claim_ptr> all;
    for (int i = 0; i < 30; ++i)
        all.push_back(member("k" + std::to_string(i), ttl));
    return all;
}

} // namespace

BOOST_AUTO_TEST_CASE(locks_on_all_masters_are_extended_and_released_by_id)
{
    auto& servers = shared_cluster();
    client_side client({.url = servers.url()}), other({.url = servers.url()});
    auto all = thirty_members();
    all.push_back(member("s", driver::long_ttl, lock_mode::shared));
    all.push_back(member("s", driver::long_ttl, lock_mode::shared));
    for (const auto& each : all)
        client.test_driver.grant(each);
    BOOST_TEST(at_index(servers, "ZCARD") == "32");
    BOOST_TEST(other.test_driver.extend_group("g", 2h).size() == 32u);
    for (const auto& each : all)
        BOOST_TEST((other.test_driver.inspect(each->key()).at(0).remaining > 90min));
    BOOST_TEST(other.test_driver.release_group("g").size() == 32u);
    for (const auto& each : all)
        client.test_driver.check_not_held(each);
    wait_for_entries(other, servers, "0");
    BOOST_TEST(other.test_driver.release_group("g").empty());
}

BOOST_AUTO_TEST_CASE(index_contains_held_locks_and_is_removed_with_the_last)
{
    auto& servers = shared_cluster();
    client_side client({.url = servers.url()});
    const auto brief = member("a", 1min), eternal = member("b", 0ms), reader = member("c", 2h, lock_mode::shared),
               broken = member("d", 0ms), moved = member("e", 0ms), next = member("e", 0ms), busy = member("a", 1min);
    for (const auto& each : {brief, eternal, reader, broken, moved})
        client.test_driver.grant(each);
    // An entry lasts longer than its lock, by a quarter of the ttl, the operation timeout and a second.
    const auto lasts = [&](const plain_claim_ptr& claim) {
        using namespace std::chrono;
        const auto now = duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
        return std::stoll(at_index(servers, "ZSCORE", claim->token().hex() + "colock:" + claim->key())) - now;
    };
    BOOST_TEST((lasts(brief) > 80'000 && lasts(brief) <= 81'000));
    BOOST_TEST(at_index(servers, "PTTL") == "-1");
    // A shorter time does not shorten the entry.
    BOOST_TEST((client.test_driver.extend(brief, 1s).status == extend_status::extended));
    BOOST_TEST(lasts(brief) > 70'000);
    BOOST_TEST((client.test_driver.extend(brief, 1h).status == extend_status::extended));
    BOOST_TEST(lasts(brief) > 4'400'000);
    // A claim that waits has an entry until it gives up.
    client.test_driver.check_refused(busy);
    BOOST_TEST(has_entry(servers, busy));
    client.test_driver.abandon(busy);
    wait_for_entries(client, servers, "5");
    client.test_driver.take_over(client.test_driver.export_ticket(moved), next);
    client.run_for(100ms);
    wait_for_entries(client, servers, "5");
    BOOST_TEST((has_entry(servers, next) && !has_entry(servers, moved)));
    BOOST_TEST(client.test_driver.break_key("d").size() == 1u);
    for (const auto& each : {eternal, next})
        client.test_driver.release_held(each);
    wait_for_entries(client, servers, "2");
    BOOST_TEST(std::stoll(at_index(servers, "PTTL")) > 2 * 3600'000);
    for (const auto& each : {brief, reader})
        client.test_driver.release_held(each);
    wait_for_entries(client, servers, "0");
}

BOOST_AUTO_TEST_CASE(lock_without_a_group_writes_no_index)
{
    auto& servers = shared_cluster();
    client_side client({.url = servers.url()});
    const auto alone = driver::exclusive("k");
    client.test_driver.grant(alone);
    client.test_driver.release_held(alone);
    auto& owner = servers.node(servers.owner_of("colock:k"));
    owner({"CONFIG", "RESETSTAT"});
    client.test_driver.grant(alone);
    client.test_driver.extend(alone, 1h);
    client.test_driver.release_held(alone);
    const auto counts = owner({"INFO", "commandstats"});
    for (const auto* const expected : {"cmdstat_set:calls=1,", "cmdstat_incrby:calls=1,", "cmdstat_evalsha:calls=2,"})
        BOOST_TEST(counts.find(expected) != std::string::npos, counts);
    BOOST_TEST(counts.find("cmdstat_z") == std::string::npos, counts);
}

/// A client behind links, of which that to the index or that to the lock `k` fails.
struct linked_client
{
    explicit linked_client(std::chrono::milliseconds timeout = 1s)
        : client({.url = links.url(), .address_map = links.map, .operation_timeout = timeout})
    {
        for (std::size_t i = 0; i < 30; ++i) {
            const auto used = driver::exclusive("warm" + std::to_string(i));
            client.test_driver.grant(used);
            client.test_driver.release_held(used);
        }
    }
    [[nodiscard]] redis_faulty_proxy& link_to(const std::string& key) { return *links.all[servers.owner_of(key)]; }

    redis_cluster& servers = shared_cluster();
    links_to_nodes links{servers};
    client_side client;
    client_side other{{.url = servers.url()}};
};

BOOST_AUTO_TEST_CASE(lock_is_not_granted_if_the_reply_of_the_index_is_lost)
{
    for (const auto what : {loss::request, loss::reply}) {
        linked_client f;
        const auto claim = member("k");
        f.link_to(index_name).cut_at_bytes(index_name, what);
        BOOST_TEST(code_of(f.client.test_driver.create(claim)) == errc::unavailable);
        BOOST_TEST(f.client.test_driver.inspect("k").empty());
        BOOST_TEST(has_entry(f.servers, claim) == (what == loss::reply));
        BOOST_TEST(f.other.test_driver.release_group("g").empty());
        f.client.test_driver.grant(claim);
        BOOST_TEST(has_entry(f.servers, claim));
        f.link_to(index_name).cut_at_bytes(index_name, what);
        BOOST_TEST((f.client.test_driver.extend(claim, 2h).status == extend_status::failed));
        f.client.test_driver.check_held(claim);
        BOOST_TEST(f.other.test_driver.release_group("g").size() == 1u);
    }
}

/// The core may give such claims up, and their entries would never expire.
BOOST_AUTO_TEST_CASE(claims_without_ttl_whose_attempt_fails_leave_no_entry)
{
    linked_client f;
    const auto held = member("k", 0ms);
    f.client.test_driver.grant(held);
    BOOST_TEST((f.client.test_driver.adopt("0123456789abcdef0123456789abcdef", member("k", 0ms)).status ==
                create_status::busy));
    wait_for_entries(f.client, f.servers, "1");
    f.client.test_driver.release_held(held);
    wait_for_entries(f.client, f.servers, "0");

    const auto lost_entry = member("k", 0ms), lost_create = member("k", 0ms);
    f.link_to(index_name).cut_at_bytes(index_name, loss::reply);
    BOOST_TEST(code_of(f.client.test_driver.create(lost_entry)) == errc::unavailable);
    wait_for_entries(f.client, f.servers, "0");
    // A grant whose reply is lost keeps its entry until it is settled.
    f.link_to("colock:k").cut_at_bytes("SET\r\n$8\r\ncolock:k", loss::reply);
    BOOST_TEST(code_of(f.client.test_driver.create(lost_create)) == errc::outcome_unknown);
    BOOST_TEST(has_entry(f.servers, lost_create));
    f.client.test_driver.abandon(lost_create);
    wait_for_entries(f.client, f.servers, "0");
}

/// A waiter sends no request until a message wakes it.
BOOST_AUTO_TEST_CASE(waiter_without_ttl_waits_for_a_message)
{
    auto& servers = shared_cluster();
    asio::io_context io;
    const redis::options settings{.url = servers.url(), .poll_interval = 1h};
    locker holder(redis::make_adapter(io.get_executor(), settings)),
        waiter(redis::make_adapter(io.get_executor(), settings));
    // In another group, because the release of a group releases all locks of its id.
    auto held = holder.group("h"), next = waiter.group("g");
    run_coro(io, held.acquire("k", {.ttl = 0ms}));
    auto waiting = start(io, next.acquire("k", {.ttl = 0ms}));
    auto& owner = servers.node(servers.owner_of("colock:k"));
    for (int i = 0; i < 500 && owner({"PUBSUB", "SHARDNUMSUB", "colock:k"}).find("\n1\n") == std::string::npos; ++i)
        io.run_for(10ms);
    io.run_for(2s);
    BOOST_TEST(waiter.stats().attempts <= 3u);
    run_coro(io, held.release());
    waiting.get(io);
    BOOST_TEST(at_index(servers, "ZCARD") == "1");
    run_coro(io, next.release());
    run_coro(io, holder.shutdown(5s));
    run_coro(io, waiter.shutdown(5s));
}

BOOST_AUTO_TEST_CASE(acquires_without_ttl_that_find_the_lock_busy_leave_no_entry)
{
    auto& servers = shared_cluster();
    asio::io_context io;
    const locker env(redis::make_adapter(io.get_executor(), {.url = servers.url()}));
    auto held = run_coro(io, env.acquire("k", {.ttl = 0ms}));
    auto group = env.group("g");
    BOOST_CHECK_THROW(run_coro(io, group.acquire("k", {.ttl = 0ms, .retry = retry_policy::never()})), retry_error);
    BOOST_TEST(!run_coro(io, env.try_acquire_all({"k", "other"}, 0s, {.ttl = 0ms})));
    BOOST_TEST(!run_coro(io, env.try_acquire_all({"k", "other"}, 300ms, {.ttl = 0ms})));
    for (int i = 0; i < 500 && !index_names(servers).empty(); ++i)
        io.run_for(10ms);
    BOOST_TEST(index_names(servers).empty());
    run_coro(io, held.release());
}

BOOST_AUTO_TEST_CASE(extension_by_id_enters_its_locks_in_parts)
{
    auto& servers = shared_cluster();
    client_side client({.url = servers.url()});
    // The server of the index has none of the locks.
    const auto index_owner = servers.owner_of(index_name);
    std::size_t count = 0;
    for (int i = 0; count < 450; ++i) {
        const auto claim = member("k" + std::to_string(i));
        if (servers.owner_of("colock:" + claim->key()) == index_owner)
            continue;
        client.test_driver.grant(claim);
        ++count;
    }
    servers.node(index_owner)({"CONFIG", "RESETSTAT"});
    BOOST_TEST(client.test_driver.extend_group("g", 2h).size() == count);
    const auto counts = servers.node(index_owner)({"INFO", "commandstats"});
    BOOST_TEST(counts.find("cmdstat_evalsha:calls=3,") != std::string::npos, counts);
    BOOST_TEST(client.test_driver.release_group("g").size() == count);
    wait_for_entries(client, servers, "0");
}

BOOST_AUTO_TEST_CASE(grant_whose_reply_is_lost_is_released_by_id)
{
    linked_client f;
    const auto claim = member("k");
    // The entry contains the name of the lock, too.
    f.link_to("colock:k").cut_at_bytes("SET\r\n$8\r\ncolock:k", loss::reply);
    BOOST_TEST(code_of(f.client.test_driver.create(claim)) == errc::outcome_unknown);
    BOOST_TEST(f.other.test_driver.release_group("g").size() == 1u);
    f.client.test_driver.grant(claim);
    f.client.test_driver.abandon(claim);
}

BOOST_AUTO_TEST_CASE(release_of_which_the_reply_is_lost_keeps_the_entry)
{
    linked_client f;
    const auto claim = member("k", 0ms);
    f.client.test_driver.grant(claim);
    f.link_to("colock:k").cut_at_bytes("colock:k", loss::request);
    BOOST_TEST((f.client.test_driver.release(claim).status == release_status::failed));
    BOOST_TEST(has_entry(f.servers, claim));
    f.client.test_driver.release_held(claim);
    wait_for_entries(f.client, f.servers, "0");
}

BOOST_AUTO_TEST_CASE(release_by_id_without_one_node_is_of_unknown_outcome_and_can_be_repeated)
{
    linked_client f(2s);
    const auto all = thirty_members();
    for (const auto& each : all)
        f.client.test_driver.grant(each);
    const auto missing = (f.servers.owner_of(index_name) + 1) % redis_cluster::masters;
    const auto is_there = [&](const plain_claim_ptr& each) {
        return f.servers.owner_of("colock:" + each->key()) == missing;
    };
    const auto count = static_cast<std::size_t>(std::ranges::count_if(all, is_there));
    f.links.all[missing]->refuse(true);
    // Nothing is extended, because not all locks can be checked.
    const auto extended = f.client.test_driver.group("g", group_action::extend, 2h);
    BOOST_TEST_REQUIRE(extended.error);
    BOOST_TEST(extended.error->code == errc::unavailable);
    for (const auto& each : all)
        BOOST_TEST((f.other.test_driver.inspect(each->key()).at(0).remaining <= driver::long_ttl));
    const auto released = f.client.test_driver.group("g", group_action::release);
    BOOST_TEST_REQUIRE(released.error);
    BOOST_TEST(released.error->code == errc::outcome_unknown);
    for (const auto& each : all)
        BOOST_TEST(f.other.test_driver.inspect(each->key()).size() == (is_there(each) ? 1u : 0u));
    f.links.all[missing]->refuse(false);
    BOOST_TEST(f.client.test_driver.release_group("g").size() == count);
}

BOOST_AUTO_TEST_CASE(index_is_complete_while_its_slot_moves)
{
    auto& servers = shared_cluster();
    client_side client({.url = servers.url()});
    const auto slot = servers.slot_of(index_name);
    const auto from = servers.owner_of(index_name), to = (from + 1) % redis_cluster::masters;
    const auto all = thirty_members();
    servers.begin_move(slot, from, to);
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i == 10)
            servers.move_keys(slot, from, to);
        if (i == 20)
            servers.finish_move(slot, from, to);
        client.test_driver.grant(all[i]);
    }
    BOOST_TEST(client.test_driver.extend_group("g", 2h).size() == all.size());
    BOOST_TEST(client.test_driver.release_group("g").size() == all.size());
    wait_for_entries(client, servers, "0");
}

BOOST_AUTO_TEST_CASE(locks_in_an_open_slot_are_released_by_id)
{
    auto& servers = shared_cluster();
    client_side client({.url = servers.url()});
    const auto slot = servers.slot_of("{a}");
    const auto from = servers.owner_of("{a}"), to = (from + 1) % redis_cluster::masters;
    const auto reader = member("{a}s", driver::long_ttl, lock_mode::shared), before = member("{a}1"),
               after = member("{a}2");
    for (const auto& each : {reader, before})
        client.test_driver.grant(each);
    servers.begin_move(slot, from, to);
    client.test_driver.grant(after);
    BOOST_TEST(client.test_driver.extend_group("g", 2h).size() == 3u);
    BOOST_TEST(client.test_driver.release_group("g").size() == 3u);
    servers.move_keys(slot, from, to);
    servers.finish_move(slot, from, to);
    for (const auto& each : {reader, before, after})
        client.test_driver.check_not_held(each);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
