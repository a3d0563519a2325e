// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "cluster.hpp"

#include "support/sockets.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <ranges>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace colock::testing {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t slots = 16384;

std::string port_of(const redis_server& server)
{
    return std::to_string(server.port());
}

std::vector<std::string> lines_of(const std::string& text)
{
    std::vector<std::string> lines;
    std::istringstream from(text);
    for (std::string line; std::getline(from, line);) {
        if (!line.empty())
            lines.push_back(line);
    }
    return lines;
}

void expect_ok(const std::string& reply)
{
    if (reply != "OK")
        throw std::runtime_error("a node of a test's cluster refuses: " + reply);
}

} // namespace

void wait_until(const std::function<bool()>& reached, std::string_view what)
{
    for (const auto limit = std::chrono::steady_clock::now() + 60s; !reached(); std::this_thread::sleep_for(20ms)) {
        if (std::chrono::steady_clock::now() > limit)
            throw std::runtime_error("a test's cluster takes too long: " + std::string(what));
    }
}

redis_cluster::redis_cluster(std::chrono::milliseconds node_timeout, std::vector<std::string> settings, bus_link links,
    const std::vector<std::vector<std::string>>& environments)
    : node_timeout_(node_timeout), settings_(std::move(settings)), links_(links)
{
    for (std::size_t i = 0; i < size; ++i)
        start_node(i < environments.size() ? environments[i] : std::vector<std::string>());
    for (std::size_t i = 0; i < masters; ++i) {
        expect_ok(node(i)({"CLUSTER", "ADDSLOTSRANGE", std::to_string(slots * i / masters),
            std::to_string(slots * (i + 1) / masters - 1)}));
        expect_ok(node(i)({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)}));
    }
    for (std::size_t i = 1; i < nodes_.size(); ++i)
        meet(i);
    const auto knows_all = [](const auto& each) {
        return (*each)({"CLUSTER", "INFO"}).find("cluster_known_nodes:6") != std::string::npos;
    };
    wait_until([&] { return std::ranges::all_of(nodes_, knows_all); }, "meeting");
    for (std::size_t i = 0; i < masters; ++i)
        wait_until([&] { return replica_of(i)({"CLUSTER", "REPLICATE", id_of(i)}) == "OK"; }, "replication");
    wait_until_ok();
}

void redis_cluster::start_node(const std::vector<std::string>& environment)
{
    const auto own_port = free_port();
    bus_ports_.push_back(own_port);
    std::vector<std::string> all{"--cluster-enabled", "yes", "--cluster-port", std::to_string(own_port),
        "--cluster-node-timeout", std::to_string(node_timeout_.count()), "--repl-diskless-sync-delay", "0",
        "--repl-ping-replica-period", "1"};
    if (links_ == bus_link::proxied) {
        bus_proxies_.push_back(std::make_unique<faulty_proxy>(own_port));
        bus_ports_.back() = bus_proxies_.back()->port();
        all.insert(all.end(), {"--cluster-announce-bus-port", std::to_string(bus_ports_.back())});
    }
    all.insert(all.end(), settings_.begin(), settings_.end());
    nodes_.push_back(std::make_unique<redis_server>(std::move(all), environment));
}

void redis_cluster::meet(std::size_t number)
{
    expect_ok(node(number)({"CLUSTER", "MEET", "127.0.0.1", port_of(node(0)), std::to_string(bus_ports_[0])}));
}

std::size_t redis_cluster::add_node()
{
    const auto count = "cluster_known_nodes:" + std::to_string(nodes_.size() + 1);
    start_node({});
    meet(nodes_.size() - 1);
    const auto knows_all = [&](const auto& each) {
        return (*each)({"CLUSTER", "INFO"}).find(count) != std::string::npos;
    };
    wait_until([&] { return std::ranges::all_of(nodes_, knows_all); }, "meeting of a new node");
    const auto is_ok = [&] {
        return (*nodes_.back())({"CLUSTER", "INFO"}).find("cluster_state:ok") != std::string::npos;
    };
    wait_until(is_ok, "agreement of a new node");
    return nodes_.size() - 1;
}

void redis_cluster::remove_node(std::size_t number)
{
    const auto id = id_of(number);
    node(number).kill();
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (node(i).is_running())
            expect_ok(node(i)({"CLUSTER", "FORGET", id}));
    }
}

void redis_cluster::set_links_of(std::size_t number, bool are_cut)
{
    bus_proxies_.at(number)->refuse(are_cut);
    for (std::size_t i = 0; i < bus_proxies_.size(); ++i) {
        // The first message on a link begins with the id of its sender.
        if (i != number)
            bus_proxies_[i]->refuse_connections_with(are_cut ? id_of(number) : "");
    }
    const auto right = [&](const char* command) { return (are_cut ? "-" : "+") + std::string(command); };
    expect_ok(node(number)({"ACL", "SETUSER", "default", right("psync"), right("sync"), right("replconf")}));
    node(number)({"CLIENT", "KILL", "TYPE", "replica"});
}

void redis_cluster::cut_off(std::size_t number)
{
    set_links_of(number, true);
}

void redis_cluster::connect_again(std::size_t number)
{
    set_links_of(number, false);
}

std::string redis_cluster::self_of(std::size_t number)
{
    const auto nodes = lines_of(node(number)({"CLUSTER", "NODES"}));
    return *std::ranges::find_if(nodes, [](const std::string& line) { return line.find("myself,") != line.npos; });
}

std::vector<std::size_t> redis_cluster::current_masters()
{
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        if (!node(i).is_running())
            continue;
        // The line of a master without slots ends with its state.
        const auto line = self_of(i);
        if (line.find("myself,master") != line.npos && !line.ends_with("connected"))
            found.push_back(i);
    }
    return found;
}

void redis_cluster::fail_over(std::size_t master, std::string_view option)
{
    const auto id = id_of(master);
    for (std::size_t i = 0; i < size; ++i) {
        if (i == master || self_of(i).find(id) == std::string::npos)
            continue;
        const auto is_promoted = [&] { return std::ranges::count(current_masters(), i) > 0; };
        // The server gives up a failover after five seconds if it has too few votes.
        for (int attempt = 0; attempt < 10; ++attempt) {
            expect_ok(option.empty() ? node(i)({"CLUSTER", "FAILOVER"}) : node(i)({"CLUSTER", "FAILOVER", option}));
            for (const auto ends = std::chrono::steady_clock::now() + 6s; std::chrono::steady_clock::now() < ends;) {
                if (is_promoted())
                    return;
                std::this_thread::sleep_for(20ms);
            }
        }
        throw std::runtime_error("a replica of a test's cluster is not promoted");
    }
    throw std::runtime_error("a master of a test's cluster has no replica");
}

std::string redis_cluster::url() const
{
    return "redis+cluster://127.0.0.1:" + port_of(*nodes_[0]) + ",127.0.0.1:" + port_of(*nodes_[1]);
}

std::string redis_cluster::id_of(std::size_t number)
{
    return node(number)({"CLUSTER", "MYID"});
}

std::uint16_t redis_cluster::slot_of(std::string_view key)
{
    return static_cast<std::uint16_t>(std::stoi(node(0)({"CLUSTER", "KEYSLOT", key})));
}

std::size_t redis_cluster::owner_of(std::string_view key)
{
    const auto refers = [&](const auto& each) {
        return !each->is_running() || (*each)({"GET", key}).starts_with("-MOVED");
    };
    const auto found = std::ranges::find_if_not(nodes_, refers);
    if (found == nodes_.end())
        throw std::runtime_error("no node of a test's cluster owns the slot of " + std::string(key));
    return static_cast<std::size_t>(found - nodes_.begin());
}

void redis_cluster::clear()
{
    for (const auto& each : nodes_)
        static_cast<void>((*each)({"FLUSHALL"}));
}

std::vector<std::string> redis_cluster::keys()
{
    std::vector<std::string> all;
    for (const auto i : current_masters()) {
        for (auto& each : lines_of(node(i)({"KEYS", "*"})))
            all.push_back(std::move(each));
    }
    return all;
}

void redis_cluster::begin_move(std::uint16_t slot, std::size_t from, std::size_t to)
{
    expect_ok(node(to)({"CLUSTER", "SETSLOT", std::to_string(slot), "IMPORTING", id_of(from)}));
    expect_ok(node(from)({"CLUSTER", "SETSLOT", std::to_string(slot), "MIGRATING", id_of(to)}));
}

void redis_cluster::move_keys(std::uint16_t slot, std::size_t from, std::size_t to)
{
    for (;;) {
        const auto names = lines_of(node(from)({"CLUSTER", "GETKEYSINSLOT", std::to_string(slot), "100"}));
        if (names.empty())
            return;
        for (const auto& each : names) {
            const auto reply = node(from)({"MIGRATE", "127.0.0.1", port_of(node(to)), each, "0", "5000"});
            if (reply != "NOKEY")
                expect_ok(reply);
        }
    }
}

void redis_cluster::finish_move(std::uint16_t slot, std::size_t from, std::size_t to)
{
    const auto all = current_masters();
    const auto owner = id_of(to);
    // The target first: the source would delete what is left.
    expect_ok(node(to)({"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", owner}));
    // A master that gives its last slot away becomes a replica as soon as it learns of the new owner.
    if (const auto reply = node(from)({"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", owner});
        reply.find("only with masters") == std::string::npos)
        expect_ok(reply);
    for (const auto i : all) {
        if (i != to && i != from)
            expect_ok(node(i)({"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", owner}));
    }
    // The next move must not begin before all nodes have heard from the new owner. A node that has not may believe a
    // late message of the former owner, and spread this once the former owner has got a higher epoch by another move.
    // The two masters then refer to each other.
    const auto epoch = epoch_of(to, to);
    const auto knows_epoch = [&](std::size_t each) { return !node(each).is_running() || epoch_of(to, each) == epoch; };
    const auto numbers = std::views::iota(std::size_t{0}, nodes_.size());
    wait_until([&] { return std::ranges::all_of(numbers, knows_epoch); }, "agreement on the epoch");
}

std::string redis_cluster::epoch_of(std::size_t number, std::size_t observer)
{
    const auto id = id_of(number);
    for (const auto& line : lines_of(node(observer)({"CLUSTER", "NODES"}))) {
        if (!line.starts_with(id))
            continue;
        // Behind the id: address, flags, master, time of the ping, time of the pong.
        std::istringstream words(line);
        std::string word;
        for (int i = 0; i < 7; ++i)
            words >> word;
        return word;
    }
    return "unknown";
}

void redis_cluster::wait_for_replica(std::size_t master)
{
    const auto offset_of = [](redis_server& from, const std::string& name) {
        const auto info = from({"INFO", "replication"});
        const auto at = info.find(name);
        return at == info.npos ? -1 : std::stoll(info.substr(at + name.size()));
    };
    const auto written = offset_of(node(master), "master_repl_offset:");
    wait_until([&] { return offset_of(replica_of(master), "slave_repl_offset:") >= written; }, "replication");
}

void redis_cluster::move_slot(std::uint16_t slot, std::size_t from, std::size_t to)
{
    begin_move(slot, from, to);
    move_keys(slot, from, to);
    finish_move(slot, from, to);
}

bool redis_cluster::moves_slots_in_one_step()
{
    return !node(0)({"CLUSTER", "GETSLOTMIGRATIONS"}).starts_with('-');
}

void redis_cluster::move_slot_in_one_step(std::string_view key, std::size_t to)
{
    const auto slot = std::to_string(slot_of(key));
    const auto from = owner_of(key);
    expect_ok(node(from)({"CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", id_of(to)}));
    const auto refers = [&](std::size_t each) { return node(each)({"GET", key}).starts_with("-MOVED"); };
    wait_until([&] { return refers(from) && !refers(to); }, "migration");
}

std::string redis_cluster::key_at(std::size_t node)
{
    for (int i = 0;; ++i) {
        auto key = "{" + std::to_string(i) + "}";
        if (owner_of(key) == node)
            return key;
    }
}

void redis_cluster::wait_until_ok()
{
    const auto is_ok = [](const auto& each) {
        const auto info = (*each)({"CLUSTER", "INFO"});
        const auto replication = (*each)({"INFO", "replication"});
        return info.find("cluster_state:ok") != info.npos && info.find("cluster_slots_ok:16384") != info.npos &&
               (replication.find("master_link_status:up") != replication.npos ||
                   replication.find("state=online") != replication.npos);
    };
    wait_until([&] { return std::ranges::all_of(nodes_, is_ok) && current_masters().size() == masters; }, "agreement");
}

void redis_cluster::wait_until_restartable()
{
    // Redis 7.0 has no names of shards.
    const auto stored_shards = [](const redis_server& server) {
        std::map<std::string, std::string> shards;
        std::ifstream file(server.folder() / "nodes.conf");
        for (std::string line; std::getline(file, line);) {
            const auto begin = line.find("shard-id=");
            if (begin != line.npos)
                shards[line.substr(0, line.find(' '))] = line.substr(begin, line.find(' ', begin) - begin);
        }
        return shards;
    };
    const auto is_same = [&](const auto& each) {
        const auto shards = stored_shards(*each);
        std::set<std::string> names;
        for (const auto& shard : shards)
            names.insert(shard.second);
        return shards == stored_shards(node(0)) && (names.empty() || names.size() == masters);
    };
    wait_until([&] { return std::ranges::all_of(nodes_, is_same); }, "agreement on the shards");
}

void redis_cluster::wait_until_promoted(std::size_t number)
{
    wait_until([&] { return std::ranges::count(current_masters(), number) > 0; }, "promotion");
}

} // namespace colock::testing
