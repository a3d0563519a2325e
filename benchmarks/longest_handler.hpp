// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "report.hpp"
#include "statistics.hpp"

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

namespace bench {

/// The most that one handler took.
struct longest_time
{
    /// Of its thread.
    std::chrono::nanoseconds cpu{0};
    /// By the clock: also what others took from that thread meanwhile.
    std::chrono::nanoseconds wall{0};
};

/// Runs the context as long as there is more to do.
template <class Condition>
[[nodiscard]] longest_time longest_handler(boost::asio::io_context& io, Condition more)
{
    using clock = std::chrono::steady_clock;
    longest_time longest;
    const auto limit = clock::now() + std::chrono::seconds(120);
    while (more()) {
        if (clock::now() > limit)
            throw std::runtime_error("the waiters do not get on");
        const auto begin = clock::now();
        const auto cpu_begin = thread_cpu_time();
        io.restart();
        const auto handled = io.poll_one();
        longest.cpu = std::max(longest.cpu, thread_cpu_time() - cpu_begin);
        longest.wall = std::max<std::chrono::nanoseconds>(longest.wall, clock::now() - begin);
        // Not inside the context: the clock would count that, too.
        if (handled == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return longest;
}

/// Adds both times. The limit is for the CPU time, because what the machine's other work takes is not the library's.
/// \param wanted that limit, in milliseconds
inline void add(report& found, const std::string& name, longest_time longest, double wanted = 5.0)
{
    const auto milliseconds = [](std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e6; };
    found.add({name, milliseconds(longest.cpu), "ms", wanted});
    found.add({name + ", by the clock", milliseconds(longest.wall), "ms"});
}

} // namespace bench
