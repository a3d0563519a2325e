// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "benchmarks/longest_handler.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <functional>

namespace colock::testing {

/// Maximum CPU time of one handler. The documented limit holds for a program without sanitizers. With sanitizers the
/// limit must only exclude handlers that block: 24 ms were measured without blocking.
#ifdef COLOCK_SANITIZED
inline constexpr std::chrono::milliseconds max_handler_cpu{100};
#else
inline constexpr std::chrono::milliseconds max_handler_cpu{5};
#endif

/// Runs the context until `reached` returns true. Returns the maximum CPU time of one handler.
[[nodiscard]] inline std::chrono::nanoseconds max_handler_time(
    boost::asio::io_context& io, const std::function<bool()>& reached)
{
    return bench::longest_handler(io, [&] { return !reached(); }).cpu;
}

/// Checks that no handler blocks the event loop for long.
/// \param act returns the maximum CPU time of a handler. It is called again if this time was too long: a slow handler
/// is slow each time, but the machine disturbs a measurement only sometimes.
/// \param limit maximum CPU time of one handler
inline void check_responsive(
    const std::function<std::chrono::nanoseconds()>& act, std::chrono::milliseconds limit = max_handler_cpu)
{
    auto longest = act();
    for (int left = 2; left > 0 && longest >= limit; --left)
        longest = std::min(longest, act());
    BOOST_TEST((longest < limit), "a handler took " << longest.count() << " ns of CPU");
}

} // namespace colock::testing
