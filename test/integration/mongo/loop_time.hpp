// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "benchmarks/longest_handler.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <functional>

namespace colock::testing {

/// Of one handler. The promise is that of a program without sanitizers; with them, one that does not block is asked for
/// (24 ms were seen of one that does not).
#ifdef COLOCK_SANITIZED
inline constexpr std::chrono::milliseconds most_cpu{100};
#else
inline constexpr std::chrono::milliseconds most_cpu{5};
#endif

/// Runs the context until `reached` returns true. Returns what the longest handler took, of CPU.
[[nodiscard]] inline std::chrono::nanoseconds longest_until(
    boost::asio::io_context& io, const std::function<bool()>& reached)
{
    return bench::longest_handler(io, [&] { return !reached(); }).cpu;
}

/// That no handler keeps others waiting for long.
/// \param act returns what the longest took; once more, if that was long: what takes long by itself does so each time,
/// what else the machine does is counted now and then
/// \param limit of CPU time for one handler
inline void check_brisk(
    const std::function<std::chrono::nanoseconds()>& act, std::chrono::milliseconds limit = most_cpu)
{
    auto longest = act();
    for (int left = 2; left > 0 && longest >= limit; --left)
        longest = std::min(longest, act());
    BOOST_TEST((longest < limit), "a handler took " << longest.count() << " ns of CPU");
}

} // namespace colock::testing
