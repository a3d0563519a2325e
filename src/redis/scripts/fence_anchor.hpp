// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/scripts/scripts.hpp"
#include "redis/settings.hpp"

#include <colock/clock.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace colock::inline v0::redis::detail {

/// Lowest acceptable fence. The counter is kept above the server's clock in microseconds, so a lower fence means that
/// the server has lost its data.
inline constexpr std::int64_t min_fence = 1'600'000'000'000'000;
/// A counter above this limit was not written by colock and might soon overflow.
inline constexpr std::int64_t max_fence = std::int64_t{1} << 62;

/// Keeps the server's fence counter above the server's clock. The counter is raised on each new connection, and once
/// per interval by an operation that takes a fence.
///
/// Thread safety: `start_interval` may be called from any thread; all other functions from the client's strand.
class fence_anchor
{
public:
    explicit fence_anchor(const settings& config) noexcept : config_(config) {}

    /// Returns true once per interval. Then the caller has to raise the counter.
    [[nodiscard]] bool start_interval(lease_clock::time_point now) noexcept
    {
        auto last = raised_at_.load(std::memory_order_relaxed);
        const auto time = now.time_since_epoch().count();
        return time - last >= interval.count() &&
               raised_at_.compare_exchange_strong(last, time, std::memory_order_relaxed);
    }
    /// Notes that another command has raised the counter.
    void note_raised(lease_clock::time_point now) noexcept
    {
        raised_at_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    }

    /// Adds the command that raises the counter to the server's clock.
    void push(boost::redis::request& request, script::form form) const
    {
        scripts::get().anchor.push(request, form, 1, config_.fence_key, highest_);
    }
    /// Tells whether a grant may use this fence. If so, the counter is kept above the fence from now on.
    [[nodiscard]] bool accept(std::int64_t fence) noexcept
    {
        // An operator has to lower a counter above `max_fence`. This client must not raise it to the old value again.
        if (fence > max_fence)
            highest_ = 0;
        if (fence < min_fence || fence > max_fence)
            return false;
        highest_ = std::max(highest_, fence);
        return true;
    }

private:
    static constexpr lease_clock::duration interval = std::chrono::seconds(1);

    const settings& config_;
    std::atomic<lease_clock::rep> raised_at_{0};
    /// Highest fence that was granted by this client. The counter is raised to this fence as well, because a replica
    /// that a failover has promoted may have a lower counter and an earlier clock.
    std::int64_t highest_ = 0;
};

} // namespace colock::inline v0::redis::detail
