// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/clock.hpp>
#include <colock/detail/clock_offset.hpp>

#include <ctime>

namespace colock::inline v0 {

namespace detail {

constinit std::atomic<lease_clock::rep> clock_offset{0};

} // namespace detail

lease_clock::time_point lease_clock::now() noexcept
{
    ::timespec time{};
    ::clock_gettime(CLOCK_BOOTTIME, &time);
    const rep offset = detail::clock_offset.load(std::memory_order_relaxed);
    return time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec + offset));
}

} // namespace colock::inline v0
