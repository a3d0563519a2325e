// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "options.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace bench {

/// The load of one slice: `in_flight` workers, each of which acquires and releases its own keys in turn. Without
/// contention, only the round trips are measured. If there are fewer keys than workers, there is contention: each
/// worker uses one key, which it shares with others.
struct workload
{
    std::string host;
    std::string port;
    std::chrono::milliseconds ttl{30'000};
    std::size_t in_flight = 1;
    std::size_t keys = 100;
    std::chrono::nanoseconds time{0};
    /// Number of turns of each program in one round. The programs alternate after each turn.
    std::size_t turns = 1;
    /// The time at which several processes start to count. Empty: each process starts after its own warm-up.
    std::optional<std::chrono::system_clock::time_point> start_time{};

    [[nodiscard]] std::chrono::nanoseconds warm_up() const
    {
        return std::min<std::chrono::nanoseconds>(time, std::chrono::milliseconds(500));
    }
    /// Whether workers share keys. Several processes use the same keys.
    [[nodiscard]] bool contended() const { return keys < in_flight || start_time; }
    /// Returns the key that a worker uses after `key`.
    [[nodiscard]] std::size_t next(std::size_t key) const
    {
        return key + in_flight < keys ? key + in_flight : key % in_flight;
    }
    [[nodiscard]] static std::string name(std::size_t key) { return "load:" + std::to_string(key); }
};

/// Result of a slice. A pair is an acquire and its release.
struct rate
{
    double pairs_per_second = 0.0;
    double cpu_us_per_pair = 0.0;
    /// All pairs of the slice, including the warm-up.
    double pairs = 0.0;
    /// For a load with contention: the longest time from the call of acquire to the release.
    double max_pair_time_ms = 0.0;
    double server_us_per_pair = 0.0;
};

/// Returns the load for the server at SCHEME://HOST:PORT, without a password. The programs of other libraries only get
/// host and port. Returns nothing for other URLs.
[[nodiscard]] std::optional<workload> workload_at(std::string_view scheme, std::string_view url);
/// Like workload_at(), with the duration from the options.
/// \throws std::invalid_argument for other URLs
[[nodiscard]] workload workload_of(std::string_view scheme, const options& settings);

/// Counters of the workers, and the flag that stops them.
struct progress
{
    std::uint64_t pairs = 0;
    bool stopping = false;
    std::chrono::nanoseconds max_pair_time{0};
};

/// A worker. It runs until `progress::stopping` is set.
using worker = std::function<boost::asio::awaitable<void>(progress& counted, std::size_t number)>;

/// Runs the workers in a context, and counts their pairs after the warm-up.
[[nodiscard]] rate run_workers(boost::asio::io_context& io, const workload& load, const worker& each);

} // namespace bench
