// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/locker.hpp>
#include <colock/redis/adapter.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace colock::testing {

/// Returns keys in two slots of each master. The tags of the slots are "a" to "f".
[[nodiscard]] std::vector<std::string> keys_in_six_slots();
/// Returns keys in many slots of all masters.
[[nodiscard]] std::vector<std::string> keys_of_all_masters();

/// Two lockers of one process that compete for locks, as two processes would.
class cluster_load
{
public:
    struct result
    {
        std::uint64_t grants = 0;
        /// Locks that were granted while another holder had them.
        std::uint64_t overlaps = 0;
        /// Fences that were not higher than the one before for the same key.
        std::uint64_t low_fences = 0;
        std::chrono::milliseconds longest_acquire{};
        /// Errors of acquires and releases.
        std::vector<std::string> errors{};

        /// Checks that locks were granted, without an overlap, a fence that was not higher, or an error.
        void check() const;
    };

    /// \param keys the locks that the load uses
    /// \param ttl of each lock
    cluster_load(redis::options settings, std::vector<std::string> keys, std::chrono::milliseconds ttl);
    cluster_load(std::string url, std::vector<std::string> keys, std::chrono::milliseconds ttl);
    ~cluster_load();

    /// Runs the load for that time, and `faults` in another thread meanwhile.
    result run(std::chrono::milliseconds duration, const std::function<void()>& faults);

private:
    struct key_state
    {
        std::string name;
        int holders = 0;
        std::uint64_t fence = 0;
    };

    asio::awaitable<void> work(locker by, unsigned seed);

    asio::io_context io_;
    std::vector<locker> lockers_;
    std::vector<key_state> keys_;
    const std::chrono::milliseconds ttl_;
    std::chrono::steady_clock::time_point ends_;
    result result_;
};

} // namespace colock::testing
