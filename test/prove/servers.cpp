// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "servers.hpp"

#include "integration/redis/sentinel.hpp"
#include "integration/redis/server.hpp"
#include "integration/redis_cluster/cluster.hpp"
#include "integration/zookeeper/server.hpp"
#include "support/in_shared_memory.hpp"
#include "support/process.hpp"
#include "support/sockets.hpp"
#include "support/temporary_folder.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <concepts>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include <sys/types.h>
#include <unistd.h>

namespace prove {

using namespace colock::testing;

const char* to_string(suspension value) noexcept
{
    switch (value) {
    case suspension::locks:
        return "locks";
    case suspension::locks_and_releases:
        return "locks_and_releases";
    case suspension::none:
        break;
    }
    return "none";
}

namespace {

/// Returns the addresses with commas between them.
std::string addresses(const std::vector<std::uint16_t>& ports)
{
    std::string result;
    for (const auto port : ports)
        (result += result.empty() ? "" : ",") += "127.0.0.1:" + std::to_string(port);
    return result;
}

std::uint16_t port_of(const std::string& address)
{
    return static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1)));
}

/// A Redis server that writes each lock to its disk before it answers.
class durable_redis
{
public:
    redis_server& operator*() noexcept { return server_; }
    redis_server* operator->() noexcept { return &server_; }
    [[nodiscard]] std::uint16_t port() const noexcept { return server_.port(); }

    void copy_data() { copy(data(), copied(), std::filesystem::copy_options::recursive); }
    /// Both are called while the server does not run.
    void remove_data() { remove_all(data()); }
    void put_copy_back()
    {
        remove_data();
        rename(copied(), data());
    }

private:
    [[nodiscard]] std::filesystem::path data() const { return folder_ / "appendonlydir"; }
    [[nodiscard]] std::filesystem::path copied() const { return folder_ / "copy"; }

    temporary_folder folder_;
    redis_server server_{{"--dir", folder_.path(), "--appendonly", "yes", "--appendfsync", "always",
        "--auto-aof-rewrite-percentage", "0", "--maxmemory-policy", "noeviction"}};
};

/// Returns all keys except for the fence counter.
std::vector<std::string> keys_of(durable_redis& server)
{
    std::vector<std::string> left;
    std::istringstream keys((*server)({"KEYS", "*"}));
    for (std::string key; std::getline(keys, key);) {
        if (key != "{colock}#fence")
            left.push_back(key);
    }
    return left;
}

class one_redis final : public servers
{
public:
    explicit one_redis(bool is_fence_unraised) : is_fence_unraised_(is_fence_unraised) {}

    std::vector<std::uint16_t> ports() const override { return {server_.port()}; }
    std::string url(const std::vector<std::uint16_t>& ports) const override { return "redis://" + addresses(ports); }
    std::vector<server_fault> faults(random_numbers& draw) override
    {
        const auto restart = [this] { server_->start(); };
        const auto kill = [this] { server_->kill(); };
        const server_fault older_copy{.name = "older copy of the data",
            .suspended = suspension::locks_and_releases,
            .keeps_locks = true,
            .begin =
                [this] {
                    server_.copy_data();
                    copied_fence_ = fence();
                },
            .end =
                [this] {
                    server_->kill();
                    server_.put_copy_back();
                    server_->start();
                    if (is_fence_unraised_)
                        undo_raised_fence();
                }};
        if (is_fence_unraised_)
            return {older_copy};
        return {
            {.name = "server stopped", .begin = [this] { server_->pause(); }, .end = [this] { server_->resume(); }},
            {.name = "server restarted", .begin = kill, .end = restart},
            {.name = "server restarted without data",
                .suspended = suspension::locks,
                .keeps_locks = true,
                .begin =
                    [this] {
                        server_->kill();
                        server_.remove_data();
                    },
                .end = restart},
            older_copy,
            {.name = "scripts flushed", .begin = [this] { (*server_)({"SCRIPT", "FLUSH"}); }, .end = [] {}},
            {.name = "memory full",
                .begin = [this] { (*server_)({"CONFIG", "SET", "maxmemory", "1"}); },
                .end = [this] { (*server_)({"CONFIG", "SET", "maxmemory", "0"}); }},
            {.name = "right removed",
                .keeps_locks = true,
                .begin =
                    [this, &draw] {
                        constexpr std::array<std::string_view, 6> rights{
                            "client", "subscribe", "publish", "evalsha", "zadd", "incrby"};
                        right_ = rights.at(draw.below(rights.size()));
                        (*server_)({"ACL", "SETUSER", "default", "-" + right_});
                    },
                .end = [this] { (*server_)({"ACL", "SETUSER", "default", "+" + right_}); }},
        };
    }
    std::vector<std::string> residue() override { return keys_of(server_); }

private:
    static constexpr std::string_view fence_key = "{colock}#fence";

    std::string fence() { return (*server_)({"GET", fence_key}); }
    /// Waits until all processes have raised the counter, as they do when they connect, and sets it back. The processes
    /// raise it once a second, so the sabotage has an effect for almost a second.
    void undo_raised_fence()
    {
        const auto limit = std::chrono::steady_clock::now() + 5s;
        while (fence() == copied_fence_ && std::chrono::steady_clock::now() < limit)
            std::this_thread::sleep_for(10ms);
        std::this_thread::sleep_for(300ms);
        (*server_)({"SET", fence_key, copied_fence_});
    }

    const bool is_fence_unraised_;
    durable_redis server_;
    std::string right_;
    std::string copied_fence_;
};

/// Servers of which a minority is damaged at a time.
template <class Server, std::uint32_t Count>
class server_group : public servers
{
public:
    std::vector<std::uint16_t> ports() const override
    {
        std::vector<std::uint16_t> result;
        for (const auto& each : all_)
            result.push_back(each->port());
        return result;
    }
    std::vector<server_fault> faults(random_numbers& draw) override
    {
        return {
            {.name = "members stopped",
                .begin = [this, &draw] { for_minority(draw, [](auto& member) { member.pause(); }); },
                .end = [this] { for_damaged([](auto& member) { member.resume(); }); }},
            {.name = "members restarted",
                .begin = [this, &draw] { for_minority(draw, [](auto& member) { member.kill(); }); },
                .end = [this] { for_damaged([](auto& member) { member.start(); }); }},
        };
    }

protected:
    static constexpr std::uint32_t count = Count;
    std::array<std::unique_ptr<Server>, count> all_;

private:
    /// Selects a minority, often the largest.
    template <class Function>
    void for_minority(random_numbers& draw, Function damage)
    {
        constexpr std::uint32_t largest = (count - 1) / 2;
        std::set<std::uint32_t> selected;
        for (std::uint32_t i = 0; i < largest; ++i)
            selected.insert(draw.below(count));
        damaged_.assign(selected.begin(), selected.end());
        for_damaged(damage);
    }
    template <class Function>
    void for_damaged(Function function)
    {
        for (const auto index : damaged_) {
            auto& server = *all_.at(index);
            if constexpr (std::same_as<Server, durable_redis>)
                function(*server);
            else
                function(server);
        }
    }

    std::vector<std::uint32_t> damaged_;
};

class redis_quorum final : public server_group<durable_redis, 5>
{
public:
    redis_quorum()
    {
        for (auto& each : all_)
            each = std::make_unique<durable_redis>();
    }
    std::string url(const std::vector<std::uint16_t>& ports) const override
    {
        return "redis+quorum://" + addresses(ports);
    }
};

/// A fake Sentinel in a process of its own. It knows no master until it is told one.
class false_sentinel
{
public:
    false_sentinel()
    {
        process_ = in_child([this, parent = ::getpid()] {
            sentinel answers(0);
            state_->port = port_of(answers.address());
            while (::getppid() == parent) {
                const auto master = state_->master.load();
                answers.master = master;
                state_->named = master;
                std::this_thread::sleep_for(2ms);
            }
        });
        while (state_->port == 0)
            std::this_thread::sleep_for(2ms);
    }
    ~false_sentinel()
    {
        ::kill(process_, SIGKILL);
        std::ignore = wait_for(process_);
    }
    false_sentinel(const false_sentinel&) = delete;
    false_sentinel& operator=(const false_sentinel&) = delete;

    [[nodiscard]] std::uint16_t port() const { return state_->port; }
    /// Names the server at this port, or none if it is 0.
    void name(std::uint16_t master)
    {
        state_->master = master;
        while (state_->named != master)
            std::this_thread::sleep_for(2ms);
    }

private:
    struct state
    {
        std::atomic<std::uint16_t> port{0};
        std::atomic<std::uint16_t> master{0};
        /// The master that the process names.
        std::atomic<std::uint16_t> named{0};
    };

    in_shared_memory<state> state_;
    pid_t process_ = -1;
};

/// A master, its replica, and two Sentinels. The first one in the URL is false: it knows no master, or names a server
/// that is not the master. The second one decides alone. It names the servers by their own addresses, so faults of
/// links affect the connections to the Sentinels only.
class replicated_redis final : public servers
{
public:
    explicit replicated_redis(bool is_first_trusted)
    {
        (*all_[1])({"REPLICAOF", "127.0.0.1", std::to_string(all_[0].port())});
        // The clients give a silent master up after a second.
        sentinel_.emplace(all_[0].port(), std::chrono::milliseconds(1500));
        await_replica();
        if (is_first_trusted)
            false_.name(alone_.emplace().port());
    }
    std::vector<std::uint16_t> ports() const override { return {false_.port(), port_of(sentinel_->address())}; }
    std::string url(const std::vector<std::uint16_t>& ports) const override
    {
        return "redis+sentinel://" + addresses(ports) + "/main";
    }
    /// If the first Sentinel is trusted, every second process knows no other one. The server that this Sentinel names
    /// is not the master of the others, but says that it is a master, as if the processes did not check its role.
    std::string url_of_process(const std::vector<std::uint16_t>& ports, std::uint32_t process) const override
    {
        if (!alone_)
            return url(ports);
        return url({ports.at(process % 2)});
    }
    std::vector<server_fault> faults(random_numbers&) override
    {
        const auto select = [this] { return selected_ = master(); };
        const server_fault replica_stopped{.name = "replica stopped",
            .begin = [this, select] { all_.at(1 - select())->pause(); },
            .end = [this] { all_.at(1 - selected_)->resume(); }};
        if (alone_)
            return {replica_stopped};
        return {
            {.name = "master killed and replaced",
                .suspended = suspension::locks_and_releases,
                .keeps_locks = true,
                .begin = [this, select] { all_.at(select())->kill(); },
                .end = [this] { await_other_master(); },
                .repair =
                    [this] {
                        all_.at(selected_)->start();
                        await_replica();
                    }},
            {.name = "master stopped and replaced",
                .suspended = suspension::locks_and_releases,
                .keeps_locks = true,
                .begin = [this, select] { all_.at(select())->pause(); },
                .end = [this] { await_other_master(); },
                .repair =
                    [this] {
                        all_.at(selected_)->resume();
                        await_replica();
                    }},
            replica_stopped,
            // A replica that may be written refuses no command, so only its role shows that it is not the master.
            {.name = "Sentinel names the replica",
                .begin =
                    [this, select] {
                        auto& replica = all_.at(1 - select());
                        (*replica)({"CONFIG", "SET", "replica-read-only", "no"});
                        false_.name(replica.port());
                        for (const std::string_view type : {"normal", "pubsub"})
                            (*all_.at(selected_))({"CLIENT", "KILL", "TYPE", type});
                    },
                .end =
                    [this] {
                        false_.name(0);
                        (*all_.at(1 - selected_))({"CONFIG", "SET", "replica-read-only", "yes"});
                    }},
        };
    }
    std::vector<std::string> residue() override { return keys_of(all_.at(master())); }

private:
    /// Returns the number of the server that the Sentinel names.
    [[nodiscard]] std::size_t master() const
    {
        const auto named = redis_shell(port_of(sentinel_->address()))({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"});
        return named.find(std::to_string(all_[0].port())) != std::string::npos ? 0 : 1;
    }
    template <class Condition>
    static void await(const char* what, Condition condition)
    {
        for (const auto limit = std::chrono::steady_clock::now() + 60s; !condition();) {
            if (std::chrono::steady_clock::now() > limit)
                throw std::runtime_error(std::string("the Sentinel has not done this: ") + what);
            std::this_thread::sleep_for(20ms);
        }
    }
    void await_other_master()
    {
        await("replace the master", [this] { return master() != selected_; });
    }
    /// Waits until the server that is not the master is a replica that the Sentinel can promote.
    void await_replica()
    {
        await("follow the master", [this] {
            const auto first = master();
            const auto replication = (*all_.at(1 - first))({"INFO", "replication"});
            return replication.find("master_port:" + std::to_string(all_.at(first).port())) != std::string::npos &&
                   replication.find("master_link_status:up") != std::string::npos &&
                   (*all_.at(first))({"ROLE"}).starts_with("master") && sentinel_->knows(all_.at(1 - first).port());
        });
    }

    std::array<durable_redis, 2> all_;
    /// Only if the first Sentinel is trusted: a server without replicas that is not known to the second Sentinel.
    std::optional<durable_redis> alone_;
    false_sentinel false_;
    std::optional<deciding_sentinel> sentinel_;
    std::size_t selected_ = 0;
};

/// The six nodes of a Redis Cluster, which write each lock to their disks before they answer. The processes reach each
/// node through a link, by `redis::options::address_map`.
class redis_masters final : public servers
{
public:
    std::vector<std::uint16_t> ports() const override
    {
        std::vector<std::uint16_t> result;
        for (std::size_t i = 0; i < redis_cluster::size; ++i)
            result.push_back(nodes_.node(i).port());
        return result;
    }
    std::string url(const std::vector<std::uint16_t>& links) const override
    {
        const auto own = ports();
        std::string map;
        for (std::size_t i = 0; i < own.size(); ++i)
            (map += i == 0 ? "" : ",") += addresses({own[i]}) + '=' + addresses({links.at(i)});
        return "redis+cluster://" + addresses({links.at(0), links.at(1)}) + "/?address_map=" + map;
    }
    std::vector<server_fault> faults(random_numbers& draw) override
    {
        const auto select = [this, &draw] {
            const auto all = nodes_.current_masters();
            return selected_ = all.at(draw.below(static_cast<std::uint32_t>(all.size())));
        };
        const auto await_other = [this] {
            wait_until([this] { return nodes_.current_masters().size() == redis_cluster::masters; }, "promotion");
        };
        return {
            {.name = "slot moved",
                .begin =
                    [this, &draw] {
                        const auto names = nodes_.keys();
                        const auto name = names.empty()
                                              ? std::string("any")
                                              : names.at(draw.below(static_cast<std::uint32_t>(names.size())));
                        slot_ = nodes_.slot_of(name);
                        source_ = nodes_.owner_of(name);
                        const auto all = nodes_.current_masters();
                        do
                            target_ = all.at(draw.below(static_cast<std::uint32_t>(all.size())));
                        while (target_ == source_);
                        nodes_.begin_move(slot_, source_, target_);
                    },
                .end =
                    [this] {
                        nodes_.move_keys(slot_, source_, target_);
                        nodes_.finish_move(slot_, source_, target_);
                    }},
            {.name = "manual failover",
                .begin = [this, select] { nodes_.fail_over(select()); },
                .end = [this] { nodes_.wait_until_ok(); }},
            {.name = "master killed and replaced",
                .suspended = suspension::locks_and_releases,
                .keeps_locks = true,
                .begin = [this, select] { nodes_.node(select()).kill(); },
                .end = await_other,
                .repair =
                    [this] {
                        nodes_.node(selected_).start();
                        nodes_.wait_until_ok();
                    }},
            {.name = "master stopped and replaced",
                .suspended = suspension::locks_and_releases,
                .keeps_locks = true,
                .begin = [this, select] { nodes_.node(select()).pause(); },
                .end = await_other,
                .repair =
                    [this] {
                        nodes_.node(selected_).resume();
                        nodes_.wait_until_ok();
                    }},
            {.name = "scripts flushed",
                .begin =
                    [this] {
                        for (const auto each : nodes_.current_masters())
                            nodes_.node(each)({"SCRIPT", "FLUSH"});
                    },
                .end = [] {}},
        };
    }
    std::vector<std::string> residue() override
    {
        auto left = nodes_.keys();
        std::erase_if(left, [](const std::string& key) { return key.starts_with("colock#f{"); });
        return left;
    }

private:
    mutable redis_cluster nodes_{2s, {"--appendonly", "yes", "--appendfsync", "always"}};
    std::size_t selected_ = 0;
    std::uint16_t slot_ = 0;
    std::size_t source_ = 0;
    std::size_t target_ = 0;
};

class ensemble final : public server_group<zookeeper_server, 3>
{
public:
    ensemble()
    {
        std::string peers = "initLimit=20\nsyncLimit=4\nmaxSessionTimeout=40000\n";
        for (std::uint32_t n = 1; n <= count; ++n)
            peers += "server." + std::to_string(n) + "=127.0.0.1:" + std::to_string(free_port()) + ':' +
                     std::to_string(free_port()) + '\n';
        for (std::uint32_t n = 0; n < count; ++n) {
            all_.at(n) = std::make_unique<zookeeper_server>(free_port(), n + 1, peers);
            all_.at(n)->launch();
        }
        for (auto& each : all_)
            each->wait_until_serving();
    }
    std::string url(const std::vector<std::uint16_t>& ports) const override
    {
        return "zookeeper://" + addresses(ports) + "?session_timeout=4s";
    }
    std::vector<std::string> residue() override
    {
        // A member that was restarted last may not have joined the ensemble yet.
        all_.front()->wait_until_serving();
        return ephemeral_nodes(all_.front()->port());
    }
};

/// A server of MongoDB's protocol, as scripts/servers.sh names it.
class mongodb final : public servers
{
public:
    explicit mongodb(const std::string& backend) : is_ferretdb_(backend == "ferretdb")
    {
        // The recovery after a kill reads the log from the last checkpoint on.
        if (backend == "mongodb_native")
            options_ = {"--checkpoint-seconds", "5", "--log-file-max", "16MB"};
        on_free_port([this](std::uint16_t port) {
            port_ = port;
            start();
        });
    }
    std::vector<std::uint16_t> ports() const override { return {port_}; }
    std::string url(const std::vector<std::uint16_t>& ports) const override
    {
        return "mongodb://" + addresses(ports) + "/?directConnection=true";
    }
    std::vector<server_fault> faults(random_numbers&) override
    {
        std::vector<server_fault> result{
            {.name = "server stopped",
                .begin = [this] { process_.signal(SIGSTOP); },
                .end = [this] { process_.signal(SIGCONT); }},
            {.name = "server restarted", .begin = [this] { process_.kill(); }, .end = [this] { start(); }},
        };
        if (is_ferretdb_)
            result.push_back({.name = "PostgreSQL disconnected",
                .begin =
                    [this] {
                        child_process disconnect({program(), "disconnect", folder_ / "data"}, folder_ / "log");
                        while (disconnect.alive())
                            ::usleep(10'000);
                    },
                .end = [] {}});
        return result;
    }

private:
    static std::string program() { return from_environment("COLOCK_MONGODB_SERVER", "secantusd-py"); }
    void start()
    {
        // The server syncs on each commit, because confirmed writes must survive a kill.
        std::vector<std::string> command{
            program(), "--port", std::to_string(port_), "--storage-path", folder_ / "data", "--sync-on-commit"};
        command.insert(command.end(), options_.begin(), options_.end());
        std::istringstream options(from_environment("COLOCK_MONGODB_OPTIONS", ""));
        command.insert(command.end(), std::istream_iterator<std::string>(options), {});
        process_ = child_process(command, folder_ / "log");
        // On a busy machine, the recovery after a kill can take longer than this function waits.
        for (int attempts_left = 4;; --attempts_left) {
            try {
                wait_until_serving(process_, port_, "the MongoDB server did not start; see scripts/servers.sh");
                return;
            } catch (const std::runtime_error&) {
                if (attempts_left == 0 || !process_.alive())
                    throw;
            }
        }
    }

    const bool is_ferretdb_;
    std::vector<std::string> options_;
    std::uint16_t port_ = 0;
    temporary_folder folder_;
    child_process process_;
};

} // namespace

std::unique_ptr<servers> start_servers(const std::string& backend, const std::string& sabotage)
{
    if (backend == "redis")
        return std::make_unique<one_redis>(sabotage == "unraised_fence");
    if (backend == "sentinel")
        return std::make_unique<replicated_redis>(sabotage == "first_sentinel");
    if (backend == "redis-cluster")
        return std::make_unique<redis_masters>();
    if (backend == "quorum")
        return std::make_unique<redis_quorum>();
    if (backend == "zookeeper")
        return std::make_unique<ensemble>();
    if (backend == "mongodb" || backend == "mongodb_native" || backend == "ferretdb")
        return std::make_unique<mongodb>(backend);
    throw std::runtime_error(
        "unknown backend '" + backend +
        "'; known: redis, sentinel, redis-cluster, quorum, zookeeper, mongodb, mongodb_native, ferretdb");
}

} // namespace prove
