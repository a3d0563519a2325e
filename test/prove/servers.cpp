// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "servers.hpp"

#include "integration/redis/sentinel.hpp"
#include "integration/redis/server.hpp"
#include "integration/zookeeper/server.hpp"
#include "support/process.hpp"
#include "support/sockets.hpp"
#include "support/temporary_folder.hpp"

#include <array>
#include <chrono>
#include <concepts>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

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
    std::vector<std::uint16_t> ports() const override { return {server_.port()}; }
    std::string url(const std::vector<std::uint16_t>& ports) const override { return "redis://" + addresses(ports); }
    std::vector<server_fault> faults(random_numbers& draw) override
    {
        const auto restart = [this] { server_->start(); };
        const auto kill = [this] { server_->kill(); };
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
            {.name = "older copy of the data",
                .suspended = suspension::locks_and_releases,
                .keeps_locks = true,
                .begin = [this] { server_.copy_data(); },
                .end =
                    [this] {
                        server_->kill();
                        server_.put_copy_back();
                        server_->start();
                    }},
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
    durable_redis server_;
    std::string right_;
};

/// Three servers, of which one is damaged at a time.
template <class Server>
class three_servers : public servers
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
            {.name = "member stopped",
                .begin = [this, &draw] { select(draw).pause(); },
                .end = [this] { selected().resume(); }},
            {.name = "member restarted",
                .begin = [this, &draw] { select(draw).kill(); },
                .end = [this] { selected().start(); }},
        };
    }

protected:
    static constexpr std::uint32_t count = 3;
    std::array<std::unique_ptr<Server>, count> all_;

private:
    auto& select(random_numbers& draw)
    {
        selected_ = draw.below(count);
        return selected();
    }
    auto& selected()
    {
        auto& server = *all_.at(selected_);
        if constexpr (std::same_as<Server, durable_redis>)
            return *server;
        else
            return server;
    }

    std::uint32_t selected_ = 0;
};

class redis_quorum final : public three_servers<durable_redis>
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

/// A master, its replica, and a Sentinel that decides alone. The Sentinel names the servers by their own addresses, so
/// faults of links affect the connections to the Sentinel only.
class replicated_redis final : public servers
{
public:
    replicated_redis()
    {
        (*all_[1])({"REPLICAOF", "127.0.0.1", std::to_string(all_[0].port())});
        // The clients give a silent master up after a second.
        sentinel_.emplace(all_[0].port(), std::chrono::milliseconds(1500));
        await_replica();
    }
    std::vector<std::uint16_t> ports() const override { return {port_of(sentinel_->address())}; }
    std::string url(const std::vector<std::uint16_t>& ports) const override
    {
        return "redis+sentinel://" + addresses(ports) + "/main";
    }
    std::vector<server_fault> faults(random_numbers&) override
    {
        const auto select = [this] { return selected_ = master(); };
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
            {.name = "replica stopped",
                .begin = [this, select] { all_.at(1 - select())->pause(); },
                .end = [this] { all_.at(1 - selected_)->resume(); }},
        };
    }
    std::vector<std::string> residue() override { return keys_of(all_.at(master())); }

private:
    static std::uint16_t port_of(const std::string& address)
    {
        return static_cast<std::uint16_t>(std::stoi(address.substr(address.find(':') + 1)));
    }
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
    std::optional<deciding_sentinel> sentinel_;
    std::size_t selected_ = 0;
};

class ensemble final : public three_servers<zookeeper_server>
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
    std::vector<std::string> residue() override { return ephemeral_nodes(all_.front()->port()); }
};

/// A server of MongoDB's protocol, as scripts/servers.sh names it.
class mongodb final : public servers
{
public:
    explicit mongodb(bool is_ferretdb) : is_ferretdb_(is_ferretdb)
    {
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
        std::istringstream options(from_environment("COLOCK_MONGODB_OPTIONS", ""));
        command.insert(command.end(), std::istream_iterator<std::string>(options), {});
        process_ = child_process(command, folder_ / "log");
        wait_until_serving(process_, port_, "the MongoDB server did not start; see scripts/servers.sh");
    }

    const bool is_ferretdb_;
    std::uint16_t port_ = 0;
    temporary_folder folder_;
    child_process process_;
};

} // namespace

std::unique_ptr<servers> start_servers(const std::string& backend)
{
    if (backend == "redis")
        return std::make_unique<one_redis>();
    if (backend == "sentinel")
        return std::make_unique<replicated_redis>();
    if (backend == "quorum")
        return std::make_unique<redis_quorum>();
    if (backend == "zookeeper")
        return std::make_unique<ensemble>();
    if (backend == "mongodb" || backend == "mongodb_native" || backend == "ferretdb")
        return std::make_unique<mongodb>(backend == "ferretdb");
    throw std::runtime_error("unknown backend '" + backend +
                             "'; known: redis, sentinel, quorum, zookeeper, mongodb, mongodb_native, ferretdb");
}

} // namespace prove
