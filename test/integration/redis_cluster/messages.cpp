// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Messages of releases in a cluster, which are published on sharded channels. A poll interval of one hour shows that a
// waiter was woken by a message.
#include "cluster.hpp"
#include "integration/redis/fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

namespace colock::testing {

BOOST_AUTO_TEST_SUITE(redis_cluster_messages)

namespace {

constexpr std::size_t nobody = redis_cluster::size;

/// Number in a line of CLUSTER INFO; 0 if there is no such line.
std::uint64_t cluster_info(redis_server& server, const std::string& name)
{
    const auto info = server({"CLUSTER", "INFO"});
    const auto at = info.find(name + ':');
    std::uint64_t value = 0;
    if (at != std::string::npos)
        std::from_chars(info.data() + at + name.size() + 1, info.data() + info.size(), value);
    return value;
}

/// A client that holds locks, and another one that waits for them.
struct two_clients
{
    explicit two_clients(redis_cluster& cluster, std::chrono::milliseconds poll_interval = 1h)
        : servers(cluster), waiter({.url = cluster.url(), .poll_interval = poll_interval}),
          holder({.url = cluster.url()})
    {
    }

    plain_claim_ptr hold(const std::string& key)
    {
        auto claim = driver::exclusive(key, 0ms);
        holder.test_driver.grant(claim);
        return claim;
    }
    running<std::uint64_t> wait_for(const std::string& key)
    {
        return waiter.test_driver.start_acquire(driver::exclusive(key, 0ms));
    }
    /// Returns the master at which a client is subscribed to the sharded channel of the key.
    std::size_t subscribed_at(const std::string& key)
    {
        for (std::size_t i = 0; i < redis_cluster::size; ++i) {
            if (servers.node(i).is_running() &&
                servers.node(i)({"PUBSUB", "SHARDNUMSUB", "colock:" + key}) == "colock:" + key + "\n1\n")
                return i;
        }
        return nobody;
    }
    void run_until_subscribed(const std::string& key, std::size_t node)
    {
        run_until(waiter.io, [&] { return subscribed_at(key) == node; });
    }
    /// Runs until the check that follows a subscription has been answered.
    void run_until_subscribed(const std::string& key)
    {
        run_until_subscribed(key, servers.owner_of("colock:" + key));
        waiter.run_for(100ms);
    }

    redis_cluster& servers;
    client_side waiter;
    client_side holder;
};

redis_cluster& shared_cluster()
{
    static redis_cluster servers;
    servers.clear();
    return servers;
}

struct clients_of_shared_cluster : two_clients
{
    clients_of_shared_cluster() : two_clients(shared_cluster()) {}
};

/// The slot of the key, which moves.
struct move
{
    move(redis_cluster& cluster, const std::string& key)
        : servers(cluster), slot(cluster.slot_of("colock:" + key)), from(cluster.owner_of("colock:" + key)),
          to((from + 1) % redis_cluster::masters)
    {
    }
    void begin() const { servers.begin_move(slot, from, to); }
    void move_keys() const { servers.move_keys(slot, from, to); }
    void finish() const { servers.finish_move(slot, from, to); }

    redis_cluster& servers;
    std::uint16_t slot;
    std::size_t from;
    std::size_t to;
};

} // namespace

BOOST_FIXTURE_TEST_CASE(message_is_sent_to_one_shard_only, clients_of_shared_cluster)
{
    const auto owner = servers.owner_of("colock:k");
    const auto sent = [&](std::size_t node, const std::string& kind) {
        return cluster_info(servers.node(node), "cluster_stats_messages_" + kind + "_sent");
    };
    std::vector<std::uint64_t> sharded, ordinary;
    for (std::size_t i = 0; i < redis_cluster::size; ++i) {
        sharded.push_back(sent(i, "publishshard"));
        ordinary.push_back(sent(i, "publish"));
    }
    for (int i = 0; i < 10; ++i) {
        const auto held = hold("k");
        auto waiting = wait_for("k");
        run_until_subscribed("k");
        BOOST_TEST(!waiting.done());
        // The waiter is subscribed at the node that counts the receivers.
        BOOST_TEST(holder.test_driver.release(held).others_wait);
        BOOST_TEST(waiting.get(waiter.io) > 0u);
        servers.node(owner)({"DEL", "colock:k"});
    }
    for (std::size_t i = 0; i < redis_cluster::size; ++i) {
        BOOST_TEST(sent(i, "publish") == ordinary[i]);
        // To its replica, if the master knows the replica already.
        BOOST_TEST(sent(i, "publishshard") - sharded[i] <= (i == owner ? 10u : 0u));
    }
}

BOOST_FIXTURE_TEST_CASE(shared_lock_and_break_send_messages, clients_of_shared_cluster)
{
    const auto reader = driver::shared("k", 0, 0ms);
    holder.test_driver.grant(reader);
    auto waiting = wait_for("k");
    run_until_subscribed("k");
    holder.test_driver.release_held(reader);
    BOOST_TEST(waiting.get(waiter.io) > 0u);

    auto next = wait_for("k");
    run_until_subscribed("k");
    BOOST_TEST(!next.done());
    static_cast<void>(run_coro(holder.io,
        holder.test_driver.backend().listing({.action = listing_action::break_key, .filter = {.key = "k"}})));
    BOOST_TEST(next.get(waiter.io) > 0u);
}

/// The message is published at the node that takes the slot over, and the waiter is subscribed at the owner.
BOOST_AUTO_TEST_CASE(release_at_the_target_wakes_the_waiter_at_the_source)
{
    redis_cluster servers;
    two_clients clients(servers);
    const auto held = clients.hold("k");
    auto waiting = clients.wait_for("k");
    clients.run_until_subscribed("k");
    const move slot(servers, "k");
    slot.begin();
    slot.move_keys();
    clients.waiter.run_for(100ms);
    BOOST_TEST(!waiting.done());
    clients.holder.test_driver.release_held(held);
    // The message for the source is sent after the release.
    clients.holder.run_for(100ms);
    BOOST_TEST(waiting.get(clients.waiter.io) > 0u);
    slot.move_keys();
    slot.finish();
}

BOOST_AUTO_TEST_CASE(waiter_behind_ask_polls)
{
    redis_cluster servers;
    two_clients clients(servers, 20ms);
    static_cast<void>(clients.hold("k"));
    const move slot(servers, "k");
    slot.begin();
    slot.move_keys();
    auto waiting = clients.wait_for("k");
    clients.run_until_subscribed("k", slot.from);
    clients.waiter.run_for(100ms);
    BOOST_TEST(!waiting.done());
    // A release by a process that could not send the message to the source.
    redis_shell target(servers.node(slot.to).port());
    BOOST_TEST(target({"ASKING"}) == "OK");
    BOOST_TEST(target({"DEL", "colock:k"}) == "1");
    BOOST_TEST(waiting.get(clients.waiter.io) > 0u);
}

BOOST_AUTO_TEST_CASE(waiters_follow_a_slot_that_moves)
{
    redis_cluster servers;
    two_clients clients(servers);
    std::vector<plain_claim_ptr> held;
    std::vector<running<std::uint64_t>> waiting;
    for (int i = 0; i < 100; ++i) {
        const auto key = "{a}" + std::to_string(i);
        held.push_back(clients.hold(key));
        waiting.push_back(clients.wait_for(key));
    }
    // The connection for the messages of this channel outlives the move.
    const move slot(servers, "{a}");
    for (const auto& each : held)
        clients.run_until_subscribed(each->key(), slot.from);
    servers.move_slot(slot.slot, slot.from, slot.to);
    for (const auto& each : held)
        clients.run_until_subscribed(each->key(), slot.to);
    // And back.
    servers.move_slot(slot.slot, slot.to, slot.from);
    for (const auto& each : held)
        clients.run_until_subscribed(each->key(), slot.from);
    clients.waiter.run_for(100ms);
    BOOST_TEST(std::ranges::none_of(waiting, &running<std::uint64_t>::done));
    for (const auto& each : held)
        clients.holder.test_driver.release_held(each);
    for (auto& each : waiting)
        BOOST_TEST(each.get(clients.waiter.io) > 0u);
}

/// The locks are released while the slot moves, each at another moment.
BOOST_AUTO_TEST_CASE(no_wake_up_is_lost_while_a_slot_moves)
{
    redis_cluster servers;
    two_clients clients(servers);
    std::vector<plain_claim_ptr> held;
    std::vector<running<std::uint64_t>> waiting;
    for (int i = 0; i < 100; ++i) {
        const auto key = "{a}" + std::to_string(i);
        held.push_back(clients.hold(key));
        waiting.push_back(clients.wait_for(key));
    }
    const move slot(servers, "{a}");
    for (const auto& each : held)
        clients.run_until_subscribed(each->key(), slot.from);
    clients.waiter.run_for(100ms);
    const auto release = [&](std::size_t first, std::size_t last) {
        for (auto i = first; i < last; ++i)
            clients.holder.test_driver.release_held(held[i]);
    };
    release(0, 20);
    slot.begin();
    release(20, 40);
    slot.move_keys();
    release(40, 60);
    slot.move_keys();
    slot.finish();
    release(60, 80);
    clients.waiter.run_for(100ms);
    release(80, 100);
    for (auto& each : waiting)
        BOOST_TEST(each.get(clients.waiter.io) > 0u);
}

/// The waiter has found the lock busy at the source before the slot moved, and subscribes there afterwards.
BOOST_AUTO_TEST_CASE(refused_subscription_counts_as_a_wake_up)
{
    redis_cluster servers;
    two_clients clients(servers);
    const move slot(servers, "{a}");
    // Another key of the same master, whose subscription is to stay.
    std::string other = "x";
    while (servers.owner_of("colock:" + other) != slot.from || servers.slot_of("colock:" + other) == slot.slot)
        other += 'x';
    const auto held = clients.hold("{a}"), other_held = clients.hold(other);
    auto other_waiting = clients.wait_for(other);
    clients.run_until_subscribed(other);
    const auto claim = driver::exclusive("{a}", 0ms);
    clients.waiter.test_driver.check_refused(claim);
    servers.move_slot(slot.slot, slot.from, slot.to);
    bool is_woken = false;
    clients.waiter.test_driver.backend().start_wait(
        claim, lease_clock::time_point::max(), completion<wait_outcome>([&](wait_outcome) { is_woken = true; }));
    run_until(clients.waiter.io, [&] { return is_woken; });
    auto waiting = clients.wait_for("{a}");
    clients.run_until_subscribed("{a}", slot.to);
    clients.waiter.run_for(100ms);
    clients.holder.test_driver.release_held(held);
    BOOST_TEST(waiting.get(clients.waiter.io) > 0u);
    BOOST_TEST(!other_waiting.done());
    BOOST_TEST(!clients.waiter.events->warned_of("messages"));
    clients.holder.test_driver.release_held(other_held);
    BOOST_TEST(other_waiting.get(clients.waiter.io) > 0u);
}

BOOST_AUTO_TEST_CASE(waiters_follow_a_failover)
{
    redis_cluster servers(2s);
    two_clients clients(servers);
    const auto held = clients.hold("k");
    auto waiting = clients.wait_for("k");
    clients.run_until_subscribed("k");
    const auto owner = servers.owner_of("colock:k");
    servers.fail_over(owner);
    clients.run_until_subscribed("k", redis_cluster::masters + owner);
    clients.waiter.run_for(100ms);
    BOOST_TEST(!waiting.done());
    clients.holder.test_driver.release_held(held);
    BOOST_TEST(waiting.get(clients.waiter.io) > 0u);
}

/// A lock that is released while the connection for messages is down.
BOOST_AUTO_TEST_CASE(lost_connection_counts_as_a_wake_up)
{
    redis_cluster servers;
    two_clients clients(servers);
    auto held = clients.hold("k");
    auto waiting = clients.wait_for("k");
    clients.run_until_subscribed("k");
    auto& owner = servers.node(servers.owner_of("colock:k"));
    owner({"CLIENT", "KILL", "TYPE", "pubsub"});
    clients.holder.test_driver.release_held(held);
    BOOST_TEST(waiting.get(clients.waiter.io) > 0u);
}

BOOST_AUTO_TEST_CASE(unneeded_channels_are_cancelled)
{
    auto& servers = shared_cluster();
    two_clients clients(servers);
    for (const auto* const key : {"k", "l"}) {
        const auto held = clients.hold(key);
        auto waiting = clients.wait_for(key);
        clients.run_until_subscribed(key);
        clients.holder.test_driver.release_held(held);
        BOOST_TEST(waiting.get(clients.waiter.io) > 0u);
    }
    // Another waiter keeps the connections in use.
    std::string last = "m";
    while (servers.owner_of("colock:" + last) != servers.owner_of("colock:k"))
        last += 'm';
    const auto held = clients.hold(last);
    auto waiting = clients.wait_for(last);
    run_until(clients.waiter.io,
        [&] { return clients.subscribed_at("k") == nobody && clients.subscribed_at("l") == nobody; });
    BOOST_TEST(!waiting.done());
    clients.holder.test_driver.release_held(held);
    BOOST_TEST(waiting.get(clients.waiter.io) > 0u);
}

BOOST_AUTO_TEST_CASE(nodes_without_sharded_channels_use_ordinary_ones)
{
    redis_cluster servers(15s, {"--rename-command", "SPUBLISH", "", "--rename-command", "SSUBSCRIBE", ""});
    two_clients clients(servers);
    const auto held = clients.hold("k");
    auto waiting = clients.wait_for("k");
    auto& owner = servers.node(servers.owner_of("colock:k"));
    run_until(clients.waiter.io, [&] { return owner({"PUBSUB", "NUMSUB", "colock:k"}) == "colock:k\n1\n"; });
    clients.waiter.run_for(100ms);
    BOOST_TEST(!waiting.done());
    clients.holder.test_driver.release_held(held);
    BOOST_TEST(waiting.get(clients.waiter.io) > 0u);
    BOOST_TEST(clients.waiter.events->warnings.size() == clients.holder.events->warnings.size());
    BOOST_TEST(!clients.waiter.events->warned_of("SPUBLISH"));
}

/// A node without sharded channels was replaced by one that has them, as in an upgrade of the servers.
BOOST_AUTO_TEST_CASE(waiter_at_a_node_without_sharded_channels_polls)
{
    redis_cluster servers(15s, {"--rename-command", "SPUBLISH", "", "--rename-command", "SSUBSCRIBE", ""});
    two_clients clients(servers, 20ms);
    static_cast<void>(clients.hold("k"));
    auto waiting = clients.wait_for("k");
    auto& owner = servers.node(servers.owner_of("colock:k"));
    run_until(clients.waiter.io, [&] { return owner({"PUBSUB", "NUMSUB", "colock:k"}) == "colock:k\n1\n"; });
    owner({"DEL", "colock:k"});
    BOOST_TEST(waiting.get(clients.waiter.io) > 0u);
}

BOOST_AUTO_TEST_CASE(missing_rights_for_messages_are_reported)
{
    redis_cluster servers;
    const auto set_rights = [&](std::string_view right) {
        for (std::size_t i = 0; i < redis_cluster::size; ++i)
            servers.node(i)({"ACL", "SETUSER", "app", "reset", "on", ">pw", "~*", "&*", "+@all", right});
    };
    const auto settings = [&] {
        return redis::options{.url = servers.url(), .user = "app", .password = "pw", .poll_interval = 20ms};
    };
    client_side other({.url = servers.url()});
    for (const auto* const right : {"-spublish", "-ssubscribe"}) {
        set_rights(right);
        client_side client(settings());
        const auto held = driver::exclusive("k", 0ms);
        other.test_driver.grant(held);
        auto waiting = client.test_driver.start_acquire(driver::exclusive("k", 0ms));
        client.run_for(500ms);
        BOOST_TEST(!waiting.done());
        BOOST_TEST(client.events->warned_of(
            right == std::string_view("-spublish") ? "SPUBLISH is refused" : "cannot be received, so waiters poll"));
        other.test_driver.release_held(held);
        BOOST_TEST(waiting.get(client.io) > 0u);
        servers.clear();
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
