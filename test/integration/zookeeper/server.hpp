// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/process.hpp"
#include "support/temporary_folder.hpp"

#include <colock/spi/capabilities.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace colock::testing {

/// Capabilities of adapters for ZooKeeper.
inline constexpr capabilities zookeeper_capabilities{.shared = true,
    .semaphore = true,
    .no_ttl = true,
    .fifo = true,
    .fence = true,
    .list = true,
    .lists_fence = true,
    .events = true,
    .groups = true,
    .expires = false};

/// Returns the port of the server that tests share.
[[nodiscard]] std::uint16_t shared_zookeeper();

/// Returns a URL without a chroot.
[[nodiscard]] std::string zookeeper_url(std::uint16_t port);

/// Ends a session as its owner would, from another connection. The password of a session follows from its id.
/// \throws std::runtime_error if there is no such session
void end_session(std::uint16_t port, std::int64_t session);

/// Returns all ephemeral nodes, as the server itself reports them, but not the nodes that the beats of sessions write.
[[nodiscard]] std::vector<std::string> ephemeral_nodes(std::uint16_t port);

/// Returns the sessions that `ephemeral_nodes` below `path` belong to.
[[nodiscard]] std::vector<std::int64_t> sessions_of(std::uint16_t port, std::string_view path);

/// Returns the session's id as the handshake that resumes the session contains it.
[[nodiscard]] std::string bytes_of_session(std::int64_t session);

/// Returns the number of watches at the server, of all clients.
[[nodiscard]] int watches_at(std::uint16_t port);

/// A ZooKeeper server in a temporary folder, with ticks of 500 ms.
class zookeeper_server
{
public:
    /// Starts a server that is no member of an ensemble.
    zookeeper_server();
    /// Prepares a member of an ensemble, which is not started yet.
    /// \param peers lines of its configuration with the addresses of all members, as this member sees them
    zookeeper_server(std::uint16_t port, std::size_t number, std::string peers);
    zookeeper_server(const zookeeper_server&) = delete;
    zookeeper_server& operator=(const zookeeper_server&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    /// Returns "standalone", "leader" or "follower"; empty if the server does not serve. Blocks if the server is
    /// paused.
    [[nodiscard]] std::string mode() const;
    [[nodiscard]] bool alive() { return process_.alive(); }

    /// Send SIGSTOP and SIGCONT.
    void pause();
    void resume();
    /// Sends SIGKILL.
    void kill();
    /// Starts the server on the same port, with its old data.
    void start();
    /// The first half of `start`: members of an ensemble serve when there are enough of them.
    /// \param environment additional variables, as NAME=value
    void launch(const std::vector<std::string>& environment = {});
    /// The second half of `start`.
    void wait_until_serving();
    /// Returns the folder of the server's data.
    [[nodiscard]] std::filesystem::path data() const { return folder_ / "data"; }
    /// Sets additional lines of the configuration, which take effect at the next start.
    void configure(std::string lines) { peers_ = std::move(lines); }

private:
    std::uint16_t port_ = 0;
    std::string peers_;
    temporary_folder folder_;
    child_process process_;
};

} // namespace colock::testing
