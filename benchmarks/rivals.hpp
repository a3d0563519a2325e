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

/// What every rival does in one slice: so many workers, each of which acquires and releases its own keys in turn, so
/// that nothing is contended and only the way to the server and back is measured. With fewer keys than workers each
/// worker has one, and shares it with others.
struct race
{
    std::string host;
    std::string port;
    std::chrono::milliseconds ttl{30'000};
    std::size_t in_flight = 1;
    std::size_t keys = 100;
    std::chrono::nanoseconds time{0};
    /// Of each rival in one round, and between those of the others.
    std::size_t turns = 1;
    /// When several processes begin to count; absent: each after a warm-up of its own.
    std::optional<std::chrono::system_clock::time_point> begins{};

    [[nodiscard]] std::chrono::nanoseconds warm_up() const
    {
        return std::min<std::chrono::nanoseconds>(time, std::chrono::milliseconds(500));
    }
    [[nodiscard]] bool contended() const { return keys < in_flight || begins; }
    /// The key after one of a worker's keys.
    [[nodiscard]] std::size_t next(std::size_t key) const
    {
        return key + in_flight < keys ? key + in_flight : key % in_flight;
    }
    [[nodiscard]] static std::string name(std::size_t key) { return "load:" + std::to_string(key); }
};

struct rate
{
    double pairs_per_second = 0.0;
    double cpu_us_per_pair = 0.0;
    /// All pairs of the slice, those of the warm-up among them.
    double pairs = 0.0;
    /// Of a contended race: from the wish for a lock to its release.
    double longest_turn_ms = 0.0;
    double server_us_per_pair = 0.0;
};

/// The race at SCHEME://HOST:PORT, a server without a password: what the other libraries' programs are given is no more
/// than that. Absent for other URLs.
[[nodiscard]] std::optional<race> race_at(std::string_view scheme, std::string_view url);
/// The same, as long as the options say.
/// \throws std::invalid_argument for other URLs
[[nodiscard]] race race_of(std::string_view scheme, const options& settings);

/// What the workers of a race count, and when they stop.
struct progress
{
    std::uint64_t pairs = 0;
    bool stopping = false;
    std::chrono::nanoseconds longest_turn{0};
};

/// A worker, until it is told to stop.
using worker = std::function<boost::asio::awaitable<void>(progress& counted, std::size_t number)>;

/// Runs a race's workers in a context, and counts what they do after the warm-up.
[[nodiscard]] rate run_workers(boost::asio::io_context& io, const race& of, const worker& each);

} // namespace bench
