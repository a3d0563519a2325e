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

/// The duration of the longest handler.
struct longest_time
{
    /// CPU time of the thread.
    std::chrono::nanoseconds cpu{0};
    /// Elapsed time. It includes time in which the thread was preempted.
    std::chrono::nanoseconds wall{0};
};

/// Runs the context while `more` returns true. Returns the duration of the longest handler.
template <class Condition>
[[nodiscard]] longest_time longest_handler(boost::asio::io_context& io, Condition more)
{
    using clock = std::chrono::steady_clock;
    longest_time longest;
    const auto limit = clock::now() + std::chrono::seconds(120);
    while (more()) {
        if (clock::now() > limit)
            throw std::runtime_error("the waiters make no progress");
        const auto begin = clock::now();
        const auto cpu_begin = thread_cpu_time();
        io.restart();
        const auto handled = io.poll_one();
        longest.cpu = std::max(longest.cpu, thread_cpu_time() - cpu_begin);
        longest.wall = std::max<std::chrono::nanoseconds>(longest.wall, clock::now() - begin);
        // The sleep is not inside of the context, where it would be measured.
        if (handled == 0)
            std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return longest;
}

/// Adds both times to the report. The limit applies to the CPU time, because the library is not responsible for other
/// load of the machine.
/// \param limit_ms the limit in milliseconds
inline void add(report& results, const std::string& name, longest_time longest, double limit_ms = 5.0)
{
    const auto milliseconds = [](std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1e6; };
    results.add({name, milliseconds(longest.cpu), "ms", limit_ms});
    results.add({name + ", elapsed", milliseconds(longest.wall), "ms"});
}

} // namespace bench
