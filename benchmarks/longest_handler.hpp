// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "statistics.hpp"

#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace bench {

/// Runs the context as long as there is more to do. Returns the most that one handler took, in milliseconds of CPU.
template <class Condition>
[[nodiscard]] double longest_handler(boost::asio::io_context& io, Condition more)
{
    std::chrono::nanoseconds longest{0};
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (more()) {
        if (std::chrono::steady_clock::now() > limit)
            throw std::runtime_error("the waiters do not get on");
        const auto begin = thread_cpu_time();
        io.restart();
        io.run_one_for(std::chrono::milliseconds(100));
        longest = std::max(longest, thread_cpu_time() - begin);
    }
    return static_cast<double>(longest.count()) / 1e6;
}

} // namespace bench
