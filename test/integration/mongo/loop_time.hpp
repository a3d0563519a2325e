// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "benchmarks/longest_handler.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

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

/// Runs the context until `reached` returns true, and checks that no handler keeps others waiting for long.
inline void run_briskly(boost::asio::io_context& io, const std::function<bool()>& reached)
{
    const auto longest = bench::longest_handler(io, [&] { return !reached(); });
    BOOST_TEST((longest.cpu < most_cpu), "a handler took " << longest.cpu.count() << " ns of CPU");
}

} // namespace colock::testing
