// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "server.hpp"
#include "support/relay.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace colock::testing {

/// Three ZooKeeper servers on 127.0.0.1 that are one. What they say to each other goes over links of ours; what they
/// say to clients does not.
class zookeeper_ensemble
{
public:
    static constexpr std::size_t size = 3;

    /// All of them serve.
    zookeeper_ensemble();
    zookeeper_ensemble(const zookeeper_ensemble&) = delete;
    zookeeper_ensemble& operator=(const zookeeper_ensemble&) = delete;

    [[nodiscard]] zookeeper_server& operator[](std::size_t number) { return *servers_.at(number); }
    /// `zookeeper://`, all members, the one with that number first.
    [[nodiscard]] std::string url(std::size_t first = 0) const;

    /// The one that leads; waits until one does.
    [[nodiscard]] std::size_t leader();
    void make_leader(std::size_t number);
    /// One that does not lead.
    [[nodiscard]] std::size_t follower() { return (leader() + 1) % size; }

    /// Nothing that it says reaches the others, nor the other way round; clients reach it.
    void cut_off(std::size_t number, bool cut = true);

    /// Restarts it, with a clock that is so much ahead.
    void set_clock(std::size_t number, std::chrono::seconds ahead);

    /// Restarts it, with sessions of that length at most.
    void limit_sessions(std::size_t number, std::chrono::milliseconds longest);

    /// As if nothing had ever happened: all run, by the right clock and with the same limits, and reach each other.
    void mend();

private:
    /// To one member from another.
    struct link
    {
        explicit link(std::uint16_t quorum_port, std::uint16_t election_port)
            : quorum(quorum_port, no_server::waits), election(election_port)
        {
        }
        /// Whoever is refused by the leader that he has just elected gives it up, and that one waits for him for long.
        relay quorum;
        relay election;
    };

    std::array<std::array<std::unique_ptr<link>, size>, size> links_;
    std::array<std::unique_ptr<zookeeper_server>, size> servers_;
    std::array<std::string, size> peers_;
    /// Those that were restarted with something of their own.
    std::array<bool, size> altered_{};
};

/// The ensemble that all tests of a program share, mended.
[[nodiscard]] zookeeper_ensemble& shared_ensemble();

} // namespace colock::testing
