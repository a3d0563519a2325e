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

/// What adapters to ZooKeeper can.
inline constexpr capabilities zookeeper_abilities{.shared = true,
    .semaphore = true,
    .no_ttl = true,
    .fifo = true,
    .fence = true,
    .list = true,
    .events = true,
    .groups = true,
    .expires = false};

/// The port of the server that tests share.
[[nodiscard]] std::uint16_t shared_zookeeper();

/// Without a chroot.
[[nodiscard]] std::string zookeeper_url(std::uint16_t port);

/// Ends a session as its owner would, from another connection. The password of a session follows from its number.
/// \throws std::runtime_error if there is no such session
void end_session(std::uint16_t port, std::int64_t session);

/// The nodes that live as long as a session, past any client.
[[nodiscard]] std::vector<std::string> ephemeral_nodes(std::uint16_t port);

/// The sessions that have one of those below that path.
[[nodiscard]] std::vector<std::int64_t> sessions_of(std::uint16_t port, std::string_view path);

/// How the number of a session is written in the handshake that asks for it again.
[[nodiscard]] std::string bytes_of_session(std::int64_t session);

/// Watches that the server has now, of all clients.
[[nodiscard]] int watches_at(std::uint16_t port);

/// A ZooKeeper server of its own, in a temporary folder. Its ticks are of 500 ms.
class zookeeper_server
{
public:
    /// Alone, and started.
    zookeeper_server();
    /// A member of an ensemble, to be started.
    /// \param peers the lines of its configuration that tell where all members are, for each other
    zookeeper_server(std::uint16_t port, std::size_t number, std::string peers);
    zookeeper_server(const zookeeper_server&) = delete;
    zookeeper_server& operator=(const zookeeper_server&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    /// "standalone", "leader" or "follower"; empty if it does not serve, and blocking if it is paused.
    [[nodiscard]] std::string mode() const;
    [[nodiscard]] bool alive() { return process_.alive(); }

    /// SIGSTOP and SIGCONT.
    void pause();
    void resume();
    /// SIGKILL.
    void kill();
    /// On the same port, with what it had on disk.
    void start();
    /// The first half of a start: members of an ensemble serve when there are enough of them.
    /// \param environment what it has beside ours, as NAME=value
    void launch(const std::vector<std::string>& environment = {});
    /// The second.
    void wait_until_serving();
    /// What it has on disk.
    [[nodiscard]] std::filesystem::path data() const { return folder_ / "data"; }
    /// More of its configuration, from its next start on.
    void configure(std::string lines) { peers_ = std::move(lines); }

private:
    std::uint16_t port_ = 0;
    std::string peers_;
    temporary_folder folder_;
    child_process process_;
};

} // namespace colock::testing
