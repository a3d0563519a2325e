// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "cluster.hpp"

#include "support/sockets.hpp"

#include <algorithm>
#include <fstream>
#include <map>
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

redis_cluster::redis_cluster(std::chrono::milliseconds node_timeout, const std::vector<std::string>& settings)
{
    std::vector<std::string> bus_ports;
    for (std::size_t i = 0; i < size; ++i) {
        bus_ports.push_back(std::to_string(free_port()));
        std::vector<std::string> all{"--cluster-enabled", "yes", "--cluster-port", bus_ports.back(),
            "--cluster-node-timeout", std::to_string(node_timeout.count()), "--repl-diskless-sync-delay", "0",
            "--repl-ping-replica-period", "1"};
        all.insert(all.end(), settings.begin(), settings.end());
        nodes_.push_back(std::make_unique<redis_server>(std::move(all)));
    }
    for (std::size_t i = 0; i < masters; ++i) {
        expect_ok(node(i)({"CLUSTER", "ADDSLOTSRANGE", std::to_string(slots * i / masters),
            std::to_string(slots * (i + 1) / masters - 1)}));
        expect_ok(node(i)({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)}));
    }
    for (std::size_t i = 1; i < nodes_.size(); ++i)
        expect_ok(node(i)({"CLUSTER", "MEET", "127.0.0.1", port_of(node(0)), bus_ports[0]}));
    const auto knows_all = [](const auto& each) {
        return (*each)({"CLUSTER", "INFO"}).find("cluster_known_nodes:6") != std::string::npos;
    };
    wait_until([&] { return std::ranges::all_of(nodes_, knows_all); }, "meeting");
    for (std::size_t i = 0; i < masters; ++i)
        wait_until([&] { return replica_of(i)({"CLUSTER", "REPLICATE", id_of(i)}) == "OK"; }, "replication");
    wait_until_ok();
}

std::string redis_cluster::self_of(std::size_t number)
{
    const auto nodes = lines_of(node(number)({"CLUSTER", "NODES"}));
    return *std::ranges::find_if(nodes, [](const std::string& line) { return line.find("myself,") != line.npos; });
}

std::vector<std::size_t> redis_cluster::current_masters()
{
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < size; ++i) {
        if (!node(i).is_running())
            continue;
        // The line of a master without slots ends with its state.
        const auto line = self_of(i);
        if (line.find("myself,master") != line.npos && !line.ends_with("connected"))
            found.push_back(i);
    }
    return found;
}

void redis_cluster::fail_over(std::size_t master)
{
    const auto id = id_of(master);
    for (std::size_t i = 0; i < size; ++i) {
        if (i == master || self_of(i).find(id) == std::string::npos)
            continue;
        // A server gives a failover up after 5 s, for example on a busy machine. Then it has to be told again.
        auto next = std::chrono::steady_clock::now();
        const auto is_promoted = [&] {
            if (std::ranges::count(current_masters(), i) > 0)
                return true;
            if (std::chrono::steady_clock::now() >= next) {
                node(i)({"CLUSTER", "FAILOVER"});
                next = std::chrono::steady_clock::now() + 6s;
            }
            return false;
        };
        wait_until(is_promoted, "promotion");
        return;
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
    const auto refers = [&](const auto& each) { return (*each)({"GET", key}).starts_with("-MOVED"); };
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
    for (const auto i : {to, from})
        expect_ok(node(i)({"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", owner}));
    for (const auto i : all) {
        if (i != to && i != from)
            expect_ok(node(i)({"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", owner}));
    }
    // The next move must not begin before all know the epoch of this one: two nodes could then have the same epoch, and
    // refer to each other for long.
    wait_until(
        [&] { return std::ranges::all_of(all, [&](std::size_t each) { return epoch_of(each) == epoch_of(to); }); },
        "agreement on the epoch");
}

std::string redis_cluster::epoch_of(std::size_t number)
{
    const auto info = node(number)({"CLUSTER", "INFO"});
    const auto at = info.find("cluster_current_epoch:");
    return info.substr(at, info.find('\r', at) - at);
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
