// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace bench {

/// What every rival does in one slice: so many workers, each of which acquires and releases its own keys in turn, so
/// that nothing is contended and only the way to the server and back is measured.
struct race
{
    std::string host;
    std::string port;
    std::chrono::milliseconds ttl{30'000};
    std::size_t in_flight = 1;
    std::size_t keys = 100;
    std::chrono::nanoseconds time{0};

    [[nodiscard]] std::chrono::nanoseconds warm_up() const
    {
        return std::min<std::chrono::nanoseconds>(time, std::chrono::milliseconds(500));
    }
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
    double server_us_per_pair = 0.0;
};

/// What the workers of a race count, and when they stop.
struct progress
{
    std::uint64_t pairs = 0;
    bool stopping = false;
};

/// A worker, from its first key on, until it is told to stop.
using worker = std::function<boost::asio::awaitable<void>(progress& counted, std::size_t first_key)>;

/// Runs a race's workers in a context, and counts what they do after the warm-up.
[[nodiscard]] rate run_workers(boost::asio::io_context& io, const race& of, const worker& each);

/// The same commands as colock's, over one plain socket, as many pairs in flight: what no client can beat by much.
/// `value` is what colock stores at a key.
[[nodiscard]] rate run_raw(const race& of, const std::string& value);
/// What is stored at a key now.
[[nodiscard]] std::string stored_at(const race& of, const std::string& key);
/// CPU time that the server has used since its start.
[[nodiscard]] double server_cpu_us(const race& of);

/// The same commands, by a loop over the driver that colock uses.
[[nodiscard]] rate run_driver(const race& of, const std::string& value);

} // namespace bench
