// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/pipeline/batch_size.hpp"

#include <algorithm>

namespace colock::inline v0::redis::detail {

std::size_t batch_size::next(std::size_t waiting, std::size_t in_flight) noexcept
{
    // A burst exceeds the recent load, so the batch size grows with the queue.
    const auto size = std::clamp(waiting / 2, current(), max);
    load_ = std::max(waiting + in_flight, load_ - (load_ + 63) / 64);
    return size;
}

/// Each batch costs both sides a wake-up and some system calls, which increases the CPU time. Too few batches make both
/// sides wait for each other, which lowers the throughput. Measured (docs/benchmarks.md): many batches are fastest at a
/// small load, and their advantage shrinks as the load grows.
std::size_t batch_size::current() const noexcept
{
    constexpr std::size_t min_size_at_high_load = 32;
    const auto split = [this](std::size_t parts) { return (load_ + parts - 1) / parts; };
    if (load_ < 6)
        return 2;
    if (load_ <= 24)
        return split(8);
    if (load_ <= 56)
        return split(4);
    return std::clamp(split(4), std::min(split(2), min_size_at_high_load), max);
}

} // namespace colock::inline v0::redis::detail
