// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "server.hpp"
#include "support/faulty_proxy.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace colock::testing {

/// An ensemble of three ZooKeeper servers on 127.0.0.1. The traffic between the servers passes through proxies of
/// the test; the traffic with clients does not.
class zookeeper_ensemble
{
public:
    static constexpr std::size_t size = 3;

    /// Starts the servers, and returns when all of them accept sessions.
    /// \param sync_limit time in ticks after which followers give up a silent leader. By default it is so long that
    /// sessions of tests end before.
    explicit zookeeper_ensemble(int sync_limit = 10);
    zookeeper_ensemble(const zookeeper_ensemble&) = delete;
    zookeeper_ensemble& operator=(const zookeeper_ensemble&) = delete;

    [[nodiscard]] zookeeper_server& operator[](std::size_t number) { return *servers_.at(number); }
    /// Returns a `zookeeper://` URL with this many servers, beginning with number `first`.
    [[nodiscard]] std::string url(std::size_t first = 0, std::size_t count = size) const;

    /// Returns the number of the leader; waits until there is one.
    /// \param paused number of a server that is paused, and is not asked
    [[nodiscard]] std::size_t leader(std::optional<std::size_t> paused = {});
    void make_leader(std::size_t number);
    /// Returns the number of a server that is not the leader.
    [[nodiscard]] std::size_t follower() { return (leader() + 1) % size; }

    /// Drops all traffic between this server and the others. Clients still reach the server.
    void cut_off(std::size_t number, bool cut = true);

    /// Restarts the server with a clock that is ahead of the right time.
    void set_clock(std::size_t number, std::chrono::seconds ahead);

    /// Restarts the server with this maximum of the session timeout.
    void limit_sessions(std::size_t number, std::chrono::milliseconds max_timeout);

    /// Restores the initial state: all servers run with the right clock and the same limits, and reach each other.
    void restore();

private:
    /// The proxies between one server and another.
    struct link
    {
        explicit link(std::uint16_t quorum_port, std::uint16_t election_port)
            : quorum(quorum_port, if_unreachable::wait), election(election_port)
        {
        }
        /// Keeps connections open until the server listens. If the proxy closed a connection to a new leader, the
        /// follower would give the leader up, and the leader would wait for the follower for a long time.
        faulty_proxy quorum;
        faulty_proxy election;
    };

    std::array<std::array<std::unique_ptr<link>, size>, size> links_;
    std::array<std::unique_ptr<zookeeper_server>, size> servers_;
    std::array<std::string, size> peers_;
    /// Whether the server was restarted with another clock or limit.
    std::array<bool, size> altered_{};
};

/// Returns the ensemble that all tests of a program share, in its initial state.
[[nodiscard]] zookeeper_ensemble& shared_ensemble();
/// Returns another shared ensemble, whose followers give up a silent leader after two seconds.
[[nodiscard]] zookeeper_ensemble& quick_ensemble();

} // namespace colock::testing
