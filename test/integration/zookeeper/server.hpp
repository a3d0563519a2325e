// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/process.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace colock::testing {

/// The port of the server that tests share.
[[nodiscard]] std::uint16_t shared_zookeeper();

/// Ends a session as its owner would, from another connection. The password of a session follows from its number.
/// \throws std::runtime_error if there is no such session
void end_session(std::uint16_t port, std::int64_t session);

/// The nodes that live as long as a session, past any client.
[[nodiscard]] std::vector<std::string> ephemeral_nodes(std::uint16_t port);

/// The sessions that have one of those below that path.
[[nodiscard]] std::vector<std::int64_t> sessions_of(std::uint16_t port, std::string_view path);

/// A ZooKeeper server of its own, alone, in a temporary folder. Its ticks are of 500 ms.
class zookeeper_server
{
public:
    zookeeper_server();
    ~zookeeper_server();
    zookeeper_server(const zookeeper_server&) = delete;
    zookeeper_server& operator=(const zookeeper_server&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

    /// SIGSTOP.
    void pause();
    /// SIGKILL.
    void kill();
    /// On the same port, with what it had on disk.
    void start();

private:
    std::uint16_t port_;
    std::filesystem::path folder_;
    child_process process_;
};

} // namespace colock::testing
