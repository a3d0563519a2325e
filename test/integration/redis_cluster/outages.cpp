// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// Nodes that are started, replaced, cut off or unreachable. Each test has a cluster of its own.
#include "cluster.hpp"
#include "integration/redis/fixture.hpp"
#include "links.hpp"
#include "load.hpp"
#include "persistent_acquire.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace colock::testing {

using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(redis_cluster_outages)

namespace {

using steady_clock = std::chrono::steady_clock;

const std::vector<std::string> partial_coverage{"--cluster-require-full-coverage", "no"};

} // namespace

/// The server answers LOADING for about three seconds.
BOOST_AUTO_TEST_CASE(master_that_loads_its_data_does_not_affect_the_others)
{
    redis_cluster servers(15s, {"--rdbcompression", "no", "--loading-process-events-interval-bytes", "1024"});
    const auto owner = servers.owner_of("{a}");
    auto& node = servers.node(owner);
    client_side client({.url = servers.url()});
    const auto held = driver::exclusive("{a}held");
    client.test_driver.grant(held);
    for (int i = 0; i < 300; ++i)
        node({"SET", "{a}" + std::to_string(i), std::string(1000, 'x')});
    BOOST_TEST(node({"SAVE"}) == "OK");
    node.kill();
    node.start({"--key-load-delay", "10000"});
    const auto is_loading = [&] { return node({"PING"}).starts_with("-LOADING"); };
    wait_until(is_loading, "begin of the loading");
    auto waiting = start_acquire(client, "{a}");
    for (std::size_t i = 0; i < redis_cluster::masters; ++i) {
        if (i != owner)
            acquire_now(client, servers.key_at(i));
    }
    BOOST_TEST(!waiting.done());
    BOOST_TEST(is_loading());
    waiting.get(client.io);
    client.test_driver.release_held(held);
}

BOOST_AUTO_TEST_CASE(nodes_are_added_and_removed_under_load)
{
    redis_cluster servers;
    cluster_load load(servers.url(), keys_in_six_slots(), 5s);
    load.run(6s,
            [&] {
                const auto added = servers.add_node();
                std::map<std::string, std::size_t> owners;
                for (const auto* const tag : {"{a}", "{b}", "{c}"}) {
                    owners[tag] = servers.owner_of(tag);
                    servers.move_slot(servers.slot_of(tag), owners[tag], added);
                }
                std::this_thread::sleep_for(500ms);
                for (const auto& [tag, owner] : owners)
                    servers.move_slot(servers.slot_of(tag), added, owner);
                servers.remove_node(added);
            })
        .check();
}

/// A server that is not a node of the cluster listens at the address of a master that has died.
BOOST_AUTO_TEST_CASE(foreign_server_at_the_address_of_a_master_grants_nothing)
{
    redis_cluster servers(2s, partial_coverage);
    const auto key = servers.key_at(0);
    client_side client({.url = servers.url(), .operation_timeout = 1s});
    const auto fence = client.test_driver.grant(driver::exclusive(key));
    servers.wait_for_replica(0);
    servers.node(0).kill();
    redis_server foreign;
    foreign.move_to(servers.node(0).port());
    const auto refused = client.test_driver.create(driver::exclusive(key + "another"));
    BOOST_TEST((refused.status == create_status::failed));
    BOOST_TEST_MESSAGE(refused.error->detail);
    acquire_now(client, servers.key_at(1));
    servers.wait_until_promoted(redis_cluster::masters);
    BOOST_TEST(acquire_now(client, key + "another") > fence);
    client.test_driver.check_refused(driver::exclusive(key));
    BOOST_TEST(foreign({"DBSIZE"}) == "0");
}

/// A replica of another master is started at the address of a master that was replaced.
BOOST_AUTO_TEST_CASE(other_node_at_the_address_of_a_master_refers_to_the_new_owner)
{
    redis_cluster servers(2s, partial_coverage);
    const auto key = servers.key_at(0);
    client_side client({.url = servers.url()});
    const auto held = driver::exclusive(key);
    client.test_driver.grant(held);
    servers.wait_for_replica(0);
    const auto port = servers.node(0).port();
    servers.node(0).kill();
    servers.wait_until_promoted(redis_cluster::masters);
    servers.replica_of(1).move_to(port);
    client_side other({.url = servers.url()});
    for (auto* const each : {&client, &other}) {
        acquire_now(*each, servers.key_at(1) + (each == &client ? "1" : "2"));
        wait_until([&] { return each->test_driver.create(driver::exclusive(key)).status == create_status::busy; },
            "the answer");
    }
    wait_until([&] { return client.test_driver.release(held).status == release_status::released; }, "the release");
    BOOST_TEST(acquire_now(other, key) != 0u);
}

BOOST_AUTO_TEST_CASE(host_names_that_cannot_be_resolved_are_reported_and_may_be_mapped)
{
    redis_cluster servers(
        15s, {"--cluster-announce-hostname", "nowhere.invalid", "--cluster-preferred-endpoint-type", "hostname"});
    client_side client({.url = servers.url(), .operation_timeout = 2s, .connect_timeout = 500ms});
    const auto refused = client.test_driver.create(driver::exclusive("{a}"));
    BOOST_TEST(code_of(refused) == errc::unavailable);
    BOOST_TEST(refused.error->detail.find("nowhere.invalid") != std::string::npos, refused.error->detail);

    std::map<std::string, std::string> map;
    for (std::size_t i = 0; i < redis_cluster::size; ++i) {
        const auto port = servers.node(i).port();
        map["nowhere.invalid:" + std::to_string(port)] = links_to_nodes::address(port);
    }
    client_side mapped({.url = servers.url(), .address_map = map});
    for (std::size_t i = 0; i < redis_cluster::masters; ++i)
        mapped.test_driver.grant(driver::exclusive(servers.key_at(i)));

    for (std::size_t i = 0; i < redis_cluster::size; ++i)
        servers.node(i)({"CONFIG", "SET", "cluster-preferred-endpoint-type", "ip"});
    acquire_now(client, "{a}");
}

/// Both masters may accept writes for a moment, so overlaps are not counted during the failovers.
BOOST_AUTO_TEST_CASE(locks_are_granted_again_after_a_forced_failover)
{
    redis_cluster servers(2s);
    cluster_load load(servers.url(), keys_of_all_masters(), 1s);
    const auto seen = load.run(5s, [&] {
        std::this_thread::sleep_for(500ms);
        servers.fail_over(0, "FORCE");
        servers.fail_over(1, "TAKEOVER");
    });
    BOOST_TEST(seen.grants > 200u);
    BOOST_TEST(seen.errors.size() == 0u, (seen.errors.empty() ? "" : seen.errors.front()));
    BOOST_TEST_MESSAGE(seen.grants << " grants, longest acquire " << seen.longest_acquire.count() << " ms");
    load.run(1s, [] {}).check();
}

/// A master that is cut off from the other nodes, and reached by its clients. It answers CLUSTERDOWN after the node
/// timeout.
BOOST_AUTO_TEST_CASE(clients_leave_a_master_that_is_cut_off_from_the_other_nodes)
{
    redis_cluster servers(2s, partial_coverage, bus_link::proxied);
    client_side client({.url = servers.url()});
    const auto key = servers.key_at(0), other = servers.key_at(1);
    const auto held = driver::exclusive(key);
    const auto fence = client.test_driver.grant(held);
    client.test_driver.release_held(held);
    servers.wait_for_replica(0);
    servers.cut_off(0);
    client.test_driver.grant(driver::exclusive(other));
    servers.wait_until_promoted(redis_cluster::masters);
    BOOST_TEST(acquire_now(client, key) > fence);
    BOOST_TEST(servers.replica_of(0)({"EXISTS", "colock:" + key}) == "1");
    BOOST_TEST(servers.node(0)({"GET", "colock:" + key}).starts_with("-CLUSTERDOWN"));
    servers.connect_again(0);
    servers.wait_until_ok();
    client.test_driver.check_refused(driver::exclusive(key));
}

/// A lock that the replica does not have. Its ttl is shorter than the node timeout, so it has ended when the replica is
/// promoted.
BOOST_AUTO_TEST_CASE(short_lock_of_a_master_that_is_cut_off_has_no_second_holder)
{
    redis_cluster servers(2s, partial_coverage, bus_link::proxied);
    links_to_nodes links(servers);
    client_side holder({.url = links.url(), .address_map = links.map});
    client_side other({.url = servers.url()});
    const auto key = servers.key_at(0);
    acquire_now(holder, key + "another");
    servers.cut_off(0);
    const auto held = driver::exclusive(key, 1s);
    const auto asked = steady_clock::now();
    const auto fence = holder.test_driver.grant(held);
    links.all[0]->refuse(true);
    servers.node(0).pause();
    auto next = start_acquire(other, key);
    // The other masters grant locks meanwhile.
    acquire_now(other, servers.key_at(1));
    acquire_now(holder, servers.key_at(2));
    servers.wait_until_promoted(redis_cluster::masters);
    BOOST_TEST(next.get(other.io) > fence);
    BOOST_TEST((steady_clock::now() - asked > 1s));
    servers.node(0).resume();
    servers.connect_again(0);
    links.all[0]->refuse(false);
    servers.wait_until_ok();
    wait_until([&] { return holder.test_driver.extend(held, 1s).status == extend_status::not_held; }, "the answer");
    other.test_driver.check_refused(driver::exclusive(key));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
