// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "settings.hpp"

#include <colock/clock.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

namespace prove {

using colock::lease_clock;

/// A resource for each key, which refuses a writer whose fence is lower than the highest fence that it has seen. In
/// memory that all processes share.
struct fenced_resources
{
    std::array<std::atomic<std::uint64_t>, max_keys> highest{};

    /// Returns whether the write was accepted.
    [[nodiscard]] bool write(std::uint32_t key, std::uint64_t fence)
    {
        auto known = highest.at(key).load();
        while (known < fence && !highest.at(key).compare_exchange_weak(known, fence))
            continue;
        return known <= fence;
    }
};

/// The settings of one process.
struct client_settings
{
    /// A number that no other process of the run has.
    std::uint32_t process = 0;
    std::uint32_t seed = 0;
    std::string url;
    std::filesystem::path history;
    lease_clock::time_point end;
    /// Whether the process may hold locks without ttl.
    bool lasting_locks = false;
};

/// Calls all functions of a locker at random until `end`, and then shuts the locker down. Throws if the shutdown was
/// not clean.
void run_client(const settings& run, const client_settings& own, fenced_resources& resources);

} // namespace prove
