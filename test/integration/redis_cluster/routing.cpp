// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "cluster.hpp"
#include "integration/redis/fixture.hpp"
#include "links.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace colock::testing {

BOOST_AUTO_TEST_SUITE(redis_cluster_routing)

namespace {

redis_cluster& shared_cluster()
{
    static redis_cluster servers;
    servers.clear();
    return servers;
}

} // namespace

BOOST_AUTO_TEST_CASE(single_server_behind_the_url_of_a_cluster_is_refused)
{
    redis_server server;
    client_side client({.url = "redis+cluster://127.0.0.1:" + std::to_string(server.port())});
    const auto refused = client.test_driver.create(driver::exclusive("k"));
    BOOST_TEST(code_of(refused) == errc::misconfigured_backend);
    BOOST_TEST(refused.error->detail.find("the server is not a node of a Redis Cluster") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(node_of_a_cluster_behind_the_url_of_a_server_needs_braces)
{
    auto& servers = shared_cluster();
    client_side client({.url = servers.node(0).url(), .prefix = "app:"});
    const auto refused = client.test_driver.create(driver::exclusive("k"));
    BOOST_TEST(code_of(refused) == errc::misconfigured_backend);
    BOOST_TEST(refused.error->detail.find("write redis+cluster://") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(node_of_a_cluster_is_no_master_of_a_quorum)
{
    auto& servers = shared_cluster();
    asio::io_context io;
    const auto url = [&](std::size_t i) { return servers.node(i).url(); };
    const driver by(io, redis::make_quorum(io.get_executor(), {url(0), url(1), url(2)}));
    const auto refused = by.create(driver::exclusive("k"));
    BOOST_TEST(code_of(refused) == errc::misconfigured_backend);
    BOOST_TEST(refused.error->detail.find("master of a quorum") != std::string::npos, refused.error->detail);
    run_coro(io, by.backend().close(1s));
    BOOST_CHECK_EXCEPTION(static_cast<void>(redis::make_quorum(io.get_executor(), {servers.url(), url(1), url(2)})),
        validation_error, [](const validation_error& each) { return each.code() == errc::invalid_options; });
}

BOOST_AUTO_TEST_CASE(plain_layout_keeps_its_keys_on_all_masters)
{
    auto& servers = shared_cluster();
    client_side client({.url = servers.url(), .layout = redis::layout::plain});
    for (int i = 0; i < 20; ++i) {
        const auto claim = driver::exclusive("k" + std::to_string(i));
        client.test_driver.grant(claim);
        BOOST_TEST((client.test_driver.extend(claim, 10s).status == extend_status::extended));
        client.test_driver.check_refused(driver::exclusive("k" + std::to_string(i)));
    }
    BOOST_TEST(servers.keys().size() == 20u);
    for (std::size_t i = 0; i < redis_cluster::masters; ++i)
        BOOST_TEST(servers.node(i)({"DBSIZE"}) != "0");
}

BOOST_AUTO_TEST_CASE(locks_are_on_all_masters_and_each_slot_has_a_counter)
{
    auto& servers = shared_cluster();
    client_side client({.url = servers.url()});
    std::vector<plain_claim_ptr> held;
    for (int i = 0; i < 30; ++i) {
        held.push_back(driver::exclusive("k" + std::to_string(i)));
        client.test_driver.grant(held.back());
    }
    for (std::size_t i = 0; i < redis_cluster::masters; ++i)
        BOOST_TEST(servers.node(i)({"KEYS", "colock:*"}) != "");
    std::set<std::uint16_t> slots_of_locks, slots_of_counters;
    for (const auto& each : servers.keys())
        (each.starts_with("colock#f{") ? slots_of_counters : slots_of_locks).insert(servers.slot_of(each));
    BOOST_TEST(slots_of_locks == slots_of_counters, boost::test_tools::per_element());
    for (const auto& each : held)
        client.test_driver.release(each);
}

BOOST_AUTO_TEST_CASE(hash_tag_of_a_key_decides_its_slot)
{
    auto& servers = shared_cluster();
    client_side client({.url = servers.url()});
    for (const auto* const key : {"order:{42}:a", "order:{42}:b"})
        client.test_driver.grant(driver::exclusive(key));
    const auto slot = servers.slot_of("{42}");
    for (const auto& each : servers.keys())
        BOOST_TEST(servers.slot_of(each) == slot, each);
}

BOOST_AUTO_TEST_CASE(replica_in_the_url_leads_to_the_masters)
{
    auto& servers = shared_cluster();
    client_side client({.url = "redis+cluster://127.0.0.1:" + std::to_string(servers.replica_of(2).port())});
    for (int i = 0; i < 10; ++i)
        client.test_driver.grant(driver::exclusive("k" + std::to_string(i)));
}

BOOST_AUTO_TEST_CASE(host_of_the_url_that_does_not_answer_is_skipped)
{
    auto& servers = shared_cluster();
    client_side client({.url = "redis+cluster://127.0.0.1:1,127.0.0.1:" + std::to_string(servers.node(1).port())});
    for (int i = 0; i < 10; ++i)
        client.test_driver.grant(driver::exclusive("k" + std::to_string(i)));
}

BOOST_AUTO_TEST_CASE(close_soon_after_the_first_operation_leaves_no_timer)
{
    auto& servers = shared_cluster();
    client_side client({.url = servers.url()});
    client.test_driver.grant(driver::exclusive("k"));
    run_coro(client.io, client.test_driver.backend().close(1s));
    client.io.restart();
    client.io.poll();
    BOOST_TEST(client.io.stopped());
    client.io.restart();
}

BOOST_AUTO_TEST_CASE(list_continues_over_all_masters)
{
    auto& servers = shared_cluster();
    client_side client({.url = servers.url()});
    std::set<std::string> expected;
    for (int i = 0; i < 700; ++i) {
        const auto key = "k" + std::to_string(i);
        client.test_driver.grant(driver::exclusive(key));
        expected.insert(key);
    }
    std::set<std::string> found;
    std::size_t pages = 0;
    listing_request request;
    do {
        const auto page = run_coro(client.io, client.test_driver.backend().listing(request));
        BOOST_TEST_REQUIRE(!page.error);
        for (const auto& each : page.locks)
            found.insert(each.key);
        request.cursor = page.next;
        ++pages;
    } while (!request.cursor.empty() && pages < 100);
    BOOST_TEST(found == expected, boost::test_tools::per_element());
    BOOST_TEST(pages > 1u);
}

BOOST_AUTO_TEST_CASE(foreign_cursor_is_refused)
{
    auto& servers = shared_cluster();
    client_side client({.url = servers.url()});
    for (const auto* const cursor : {"17", "0/127.0.0.1:1", "x/127.0.0.1:1/0-1", "0/127.0.0.1:1/5-3", "0/h:1/0-16384"})
    {
        const auto page = run_coro(client.io, client.test_driver.backend().listing({.cursor = cursor}));
        BOOST_TEST_REQUIRE(page.error, cursor);
        BOOST_TEST(page.error->code == errc::invalid_options);
    }
}

BOOST_AUTO_TEST_CASE(slot_without_an_owner_is_unavailable_until_it_has_one)
{
    redis_cluster servers;
    client_side client({.url = servers.url(), .operation_timeout = 500ms});
    const auto slot = std::to_string(servers.slot_of("{a}"));
    const auto owner = servers.owner_of("{a}");
    for (std::size_t i = 0; i < redis_cluster::size; ++i)
        servers.node(i)({"CLUSTER", "DELSLOTS", slot});
    BOOST_TEST(code_of(client.test_driver.create(driver::exclusive("{a}"))) == errc::unavailable);
    for (std::size_t i = 0; i < redis_cluster::masters; ++i)
        servers.node(i)({"CONFIG", "SET", "cluster-require-full-coverage", "no"});
    // The other slots are served.
    run_coro(client.io, acquire(client.test_driver.shared_backend(), driver::exclusive("{b}")));
    servers.node(owner)({"CLUSTER", "ADDSLOTS", slot});
    servers.wait_until_ok();
    client.test_driver.grant(driver::exclusive("{a}"));
}

/// An operator has told two masters that the other one has the slot.
BOOST_AUTO_TEST_CASE(nodes_that_refer_to_each_other_are_unavailable)
{
    redis_cluster servers;
    client_side client({.url = servers.url(), .operation_timeout = 500ms});
    const auto slot = std::to_string(servers.slot_of("{a}"));
    const auto owner = servers.owner_of("{a}"), other = (owner + 1) % redis_cluster::masters;
    servers.node(owner)({"CLUSTER", "SETSLOT", slot, "NODE", servers.node(other)({"CLUSTER", "MYID"})});
    const auto refused = client.test_driver.create(driver::exclusive("{a}"));
    BOOST_TEST(code_of(refused) == errc::unavailable);
    BOOST_TEST(refused.error->detail.find("the nodes refer to each other") != std::string::npos, refused.error->detail);
    servers.finish_move(static_cast<std::uint16_t>(std::stoi(slot)), other, owner);
    client.test_driver.grant(driver::exclusive("{a}"));
}

BOOST_AUTO_TEST_CASE(documented_rights_are_sufficient)
{
    redis_cluster servers;
    for (std::size_t i = 0; i < redis_cluster::size; ++i)
        BOOST_TEST(servers.node(i)({"ACL", "SETUSER", "app", "on", ">pw", "resetkeys", "~colock:*", "~colock#*",
                       "resetchannels", "&colock:*", "-@all", "+ping", "+info", "+client|kill", "+eval", "+evalsha",
                       "+set", "+get", "+getex", "+mget", "+del", "+incrby", "+persist", "+pexpire", "+pexpireat",
                       "+pttl", "+type", "+time", "+scan", "+zadd", "+zcard", "+zrange", "+zrangebyscore", "+zrem",
                       "+zscan", "+zscore", "+asking", "+cluster|slots", "+ssubscribe", "+sunsubscribe", "+spublish",
                       "+pubsub|shardnumsub"}) == "OK");
    client_side client({.url = servers.url(), .user = "app", .password = "pw", .poll_interval = 1h});
    const auto use = [&](const plain_claim_ptr& claim) {
        client.test_driver.grant(claim);
        BOOST_TEST((client.test_driver.extend(claim, 10s).status == extend_status::extended));
        client.test_driver.release_held(claim);
    };
    for (int i = 0; i < 10; ++i) {
        use(driver::exclusive("k" + std::to_string(i)));
        use(driver::shared("s" + std::to_string(i), 2));
    }
    const auto slot = servers.slot_of("{a}");
    const auto owner = servers.owner_of("{a}"), other = (owner + 1) % redis_cluster::masters;
    servers.begin_move(slot, owner, other);
    use(driver::exclusive("{a}"));
    servers.move_keys(slot, owner, other);
    servers.finish_move(slot, owner, other);
    use(driver::exclusive("{a}"));
    const auto held = driver::exclusive("{a}", 0ms);
    client.test_driver.grant(held);
    auto waiting = client.test_driver.start_acquire(driver::exclusive("{a}"));
    run_until(
        client.io, [&] { return servers.node(other)({"PUBSUB", "SHARDNUMSUB", "colock:{a}"}) == "colock:{a}\n1\n"; });
    client.test_driver.release_held(held);
    BOOST_TEST(waiting.get(client.io) > 0u);
    // The channels are cancelled, and the connections closed.
    run_until(
        client.io, [&] { return servers.node(other)({"PUBSUB", "SHARDNUMSUB", "colock:{a}"}) == "colock:{a}\n0\n"; });
    servers.clear();
    BOOST_TEST(run_coro(client.io, client.test_driver.backend().listing({})).locks.empty());
    BOOST_TEST(!run_coro(client.io, client.test_driver.backend().listing({.action = listing_action::purge})).error);
    for (std::size_t i = 0; i < redis_cluster::masters; ++i)
        BOOST_TEST(servers.node(i)({"ACL", "LOG"}) == "");
}

BOOST_AUTO_TEST_CASE(all_masters_may_be_restarted)
{
    redis_cluster servers(15s, {"--appendonly", "yes", "--appendfsync", "always"});
    servers.wait_until_restartable();
    client_side client({.url = servers.url()});
    const auto held = driver::exclusive("{a}");
    client.test_driver.grant(held);
    for (std::size_t i = 0; i < redis_cluster::masters; ++i)
        servers.node(i).kill();
    for (std::size_t i = 0; i < redis_cluster::masters; ++i)
        servers.node(i).start();
    servers.wait_until_ok();
    BOOST_TEST((run_coro(client.io, acquire(client.test_driver.shared_backend(), driver::exclusive("{b}"))) != 0u));
    BOOST_TEST((client.test_driver.extend(held, 10s).status == extend_status::extended));
    client.test_driver.release_held(held);
}

BOOST_AUTO_TEST_CASE(address_map_is_used_for_reported_addresses)
{
    auto& servers = shared_cluster();
    links_to_nodes links(servers);
    client_side client({.url = links.url(), .address_map = links.map});
    for (int i = 0; i < 20; ++i)
        client.test_driver.grant(driver::exclusive("k" + std::to_string(i)));
    // The links of all masters are cut, so no operation can go around them.
    for (const auto& each : links.all)
        each->refuse(true);
    for (const auto& each : links.all)
        each->hang_up();
    client_side other({.url = servers.url()});
    other.test_driver.grant(driver::exclusive("another"));
    BOOST_TEST((client.test_driver.create(driver::exclusive("k")).status == create_status::failed));
}

/// A create whose reply was lost at the owner of its slot. The slot has moved to another master afterwards.
struct lost_create
{
    lost_create()
    {
        client.test_driver.grant(driver::exclusive("{a}1"));
        links.all[owner]->cut_at("colock:{a}2", loss::reply);
        BOOST_TEST(code_of(client.test_driver.create(claim)) == errc::outcome_unknown);
        servers.move_slot(servers.slot_of("{a}"), owner, (owner + 1) % redis_cluster::masters);
    }

    redis_cluster servers;
    links_to_nodes links{servers};
    client_side client{{.url = links.url(), .address_map = links.map, .operation_timeout = 1s}};
    const std::size_t owner = servers.owner_of("{a}");
    const plain_claim_ptr claim = driver::exclusive("{a}2");
};

/// Only the answer of the former owner proves that it executes the create no second time.
BOOST_FIXTURE_TEST_CASE(lost_create_is_settled_at_the_node_that_it_was_sent_to, lost_create)
{
    BOOST_TEST((client.test_driver.abandon(claim).status == release_status::released));
    client.test_driver.grant(driver::exclusive("{a}2"));
}

BOOST_FIXTURE_TEST_CASE(lost_create_is_released_but_not_settled_without_its_node, lost_create)
{
    // The client learns of the new owner.
    static_cast<void>(client.test_driver.create(driver::one_attempt("{a}1")));
    links.all[owner]->refuse(true);
    links.all[owner]->hang_up();
    BOOST_TEST((client.test_driver.abandon(claim).status == release_status::failed));
    client.test_driver.grant(driver::exclusive("{a}2"));
    links.all[owner]->refuse(false);
    BOOST_TEST((client.test_driver.abandon(claim).status == release_status::not_held));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
