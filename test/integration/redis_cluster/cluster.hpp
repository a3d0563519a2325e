// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "integration/redis/server.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace colock::testing {

/// How the nodes of a cluster reach each other.
enum class bus_link : unsigned char
{
    direct,
    /// Through proxies, so that `redis_cluster::cut_off` can be called.
    proxied,
};

/// Runs a Redis Cluster. At the start, the nodes 0, 1 and 2 are masters, and the nodes 3, 4 and 5 their replicas.
class redis_cluster
{
public:
    static constexpr std::size_t masters = 3;
    static constexpr std::size_t size = 2 * masters;

    /// \param node_timeout the default is so long that a busy machine causes no failover
    /// \param settings of each server
    /// \param environments variables of each server, in the order of the numbers
    explicit redis_cluster(std::chrono::milliseconds node_timeout = std::chrono::seconds(15),
        std::vector<std::string> settings = {}, bus_link links = bus_link::direct,
        const std::vector<std::vector<std::string>>& environments = {});

    /// The URL names the first two masters.
    [[nodiscard]] std::string url() const;
    [[nodiscard]] redis_server& node(std::size_t number) noexcept { return *nodes_[number]; }
    /// Returns the node with the same data: the replica of a master, or the former master of a promoted replica.
    [[nodiscard]] redis_server& replica_of(std::size_t master) noexcept { return node((masters + master) % size); }
    [[nodiscard]] std::string id_of(std::size_t number);
    /// Numbers of the nodes that are masters now and have slots, in the order of their numbers.
    [[nodiscard]] std::vector<std::size_t> current_masters();
    [[nodiscard]] std::uint16_t slot_of(std::string_view key);
    /// Number of the node that owns the slot of the key.
    [[nodiscard]] std::size_t owner_of(std::string_view key);
    /// Returns a key of a slot of this node. More text behind it makes another key of the same slot.
    [[nodiscard]] std::string key_at(std::size_t node);
    /// Removes all keys of all masters.
    void clear();
    /// The names of all keys of the current masters.
    [[nodiscard]] std::vector<std::string> keys();

    /// Moves a slot with its keys from one master to another, in three steps.
    void move_slot(std::uint16_t slot, std::size_t from, std::size_t to);
    void begin_move(std::uint16_t slot, std::size_t from, std::size_t to);
    void move_keys(std::uint16_t slot, std::size_t from, std::size_t to);
    void finish_move(std::uint16_t slot, std::size_t from, std::size_t to);
    /// Whether the servers can move a slot with its keys in one step, as Valkey 9 can.
    [[nodiscard]] bool moves_slots_in_one_step();
    void move_slot_in_one_step(std::string_view key, std::size_t to);

    /// Lets a replica of the master take over, and waits until it has.
    /// \param option of CLUSTER FAILOVER. Without an option, nothing is lost.
    void fail_over(std::size_t master, std::string_view option = {});
    /// Waits until the replica of the master has its latest writes.
    void wait_for_replica(std::size_t master);
    /// Adds a master without slots, and returns its number.
    std::size_t add_node();
    /// Removes a node without slots from the cluster, and stops it.
    void remove_node(std::size_t number);
    /// Cuts all links between this node and the others: those of the cluster, and those of replicas. Clients still
    /// reach the node.
    void cut_off(std::size_t number);
    /// Undoes `cut_off`.
    void connect_again(std::size_t number);
    /// Waits until all nodes run and agree, and each master has a replica.
    void wait_until_ok();
    /// Waits until the files of all nodes name the same shards. Valkey 8.1.1 writes other names at first, with which it
    /// refuses to start: https://github.com/valkey-io/valkey/issues/2171
    void wait_until_restartable();
    /// Waits until the node has been promoted.
    void wait_until_promoted(std::size_t number);

private:
    void start_node(const std::vector<std::string>& environment);
    /// Lets the node join the cluster.
    void meet(std::size_t number);
    void set_links_of(std::size_t number, bool are_cut);
    /// Returns the line of CLUSTER NODES in which the node describes itself.
    [[nodiscard]] std::string self_of(std::size_t number);
    /// Returns the epoch of the node's slots, as another node knows it.
    [[nodiscard]] std::string epoch_of(std::size_t number, std::size_t observer);

    const std::chrono::milliseconds node_timeout_;
    const std::vector<std::string> settings_;
    const bus_link links_;
    /// Ports at which the nodes reach each other.
    std::vector<std::uint16_t> bus_ports_;
    /// Empty if the nodes have direct links.
    std::vector<std::unique_ptr<faulty_proxy>> bus_proxies_;
    std::vector<std::unique_ptr<redis_server>> nodes_;
};

/// \throws std::runtime_error if it takes too long
void wait_until(const std::function<bool()>& reached, std::string_view what);

} // namespace colock::testing
