// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "server.hpp"
#include "support/peer.hpp"
#include "support/process.hpp"
#include "support/sockets.hpp"
#include "support/temporary_folder.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace colock::testing {

/// Returns the hosts as a URL lists them.
inline std::string hosts_of(const std::vector<std::string>& addresses)
{
    std::string result;
    for (const auto& each : addresses)
        result += (result.empty() ? "" : ",") + each;
    return result;
}

/// A fake Sentinel. The master that it names is the server at the port `master`, which a test can change. If the port
/// is 0, it does not know the name of the master.
class sentinel
{
public:
    explicit sentinel(std::uint16_t first)
        : master(first), speaks_(io_,
                             [this](peer::talk& with) -> asio::awaitable<void> {
                                 while (co_await with.hear("GET-MASTER-ADDR-BY-NAME"))
                                     co_await with.say(answer());
                             }),
          thread_([this] { io_.run(); })
    {
    }
    ~sentinel()
    {
        io_.stop();
        thread_.join();
    }
    sentinel(const sentinel&) = delete;
    sentinel& operator=(const sentinel&) = delete;

    [[nodiscard]] std::string url() const { return "redis+sentinel://" + address() + "/main"; }
    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(speaks_.port()); }

    std::atomic<std::uint16_t> master;

private:
    [[nodiscard]] std::string answer() const
    {
        const auto port = std::to_string(master);
        const std::string hello = "%1\r\n$4\r\nrole\r\n$8\r\nsentinel\r\n";
        if (port == "0")
            return hello + "_\r\n";
        return hello + "*2\r\n$9\r\n127.0.0.1\r\n$" + std::to_string(port.size()) + "\r\n" + port + "\r\n";
    }

    asio::io_context io_;
    peer speaks_;
    std::thread thread_;
};

/// A Sentinel process that alone decides to replace a master. It monitors the server at `master_port` under the name
/// "main".
class deciding_sentinel
{
public:
    /// \param down_after how long the master has to be silent before it is replaced
    deciding_sentinel(std::uint16_t master_port, std::chrono::milliseconds down_after)
    {
        const auto config = folder_ / "sentinel.conf";
        std::ofstream(config) << "port " << port_ << "\nbind 127.0.0.1\ndir " << folder_.path().string()
                              << "\nsentinel monitor main 127.0.0.1 " << master_port
                              << " 1\nsentinel down-after-milliseconds main " << down_after.count()
                              << "\nsentinel failover-timeout main 1000\n";
        process_.emplace(
            std::vector<std::string>{from_environment("COLOCK_REDIS_SERVER", "redis-server"), config, "--sentinel"},
            folder_ / "log");
        wait_until_serving(*process_, port_, "the Sentinel does not start");
    }
    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
    /// Returns whether the Sentinel knows this replica, so that it can promote it.
    [[nodiscard]] bool knows(std::uint16_t replica_port) const
    {
        return redis_shell(port_)({"SENTINEL", "REPLICAS", "main"}).find(std::to_string(replica_port)) !=
               std::string::npos;
    }

private:
    const temporary_folder folder_{};
    const std::uint16_t port_ = free_port();
    std::optional<child_process> process_{};
};

/// A Sentinel process with TLS. It monitors the server at `master_port` under the name "main".
class tls_sentinel
{
public:
    tls_sentinel(std::uint16_t master_port, const std::string& certificate_file, const std::string& key_file,
        const std::string& authority_file)
    {
        const auto config = folder_ / "sentinel.conf";
        std::ofstream(config) << "port " << port_ << "\ntls-port " << tls_port_ << "\ntls-cert-file "
                              << certificate_file << "\ntls-key-file " << key_file << "\ntls-ca-cert-file "
                              << authority_file << "\nbind 127.0.0.1\ndir " << folder_.path().string()
                              << "\nsentinel monitor main 127.0.0.1 " << master_port << " 2\n";
        process_.emplace(
            std::vector<std::string>{from_environment("COLOCK_REDIS_SERVER", "redis-server"), config, "--sentinel"},
            folder_ / "log");
        wait_until_serving(*process_, tls_port_, "the Sentinel does not start");
    }
    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(tls_port_); }

private:
    const temporary_folder folder_{};
    const std::uint16_t port_ = free_port();
    const std::uint16_t tls_port_ = free_port();
    std::optional<child_process> process_{};
};

} // namespace colock::testing
