// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "statistics.hpp"

#include <colock/locker.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace bench {

struct load_result
{
    std::uint64_t pairs = 0;
    std::chrono::nanoseconds elapsed{0};
    /// From the call of `acquire` to the grant.
    histogram latency;
    /// The loop thread's CPU time.
    std::chrono::nanoseconds cpu{0};
    /// The most CPU time that the loop spent between two beats of a timer of 1 ms.
    std::chrono::nanoseconds longest_stall{0};
};

/// So many coroutines acquire a random one of so many keys, hold it over one turn of the loop, and release it.
[[nodiscard]] load_result run_load(boost::asio::io_context& io, const colock::locker& locker, std::size_t concurrency,
    std::size_t keys, std::chrono::nanoseconds time);

} // namespace bench
