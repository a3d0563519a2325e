// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/scripts/scripts.hpp"
#include "redis/settings.hpp"

#include <colock/clock.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace colock::redis::detail {

/// The counter is kept above the server's clock in microseconds: a lower fence was given after its data was lost.
inline constexpr std::int64_t least_fence = 1'600'000'000'000'000;
/// A counter beyond this was not made by colock, and might soon overflow.
inline constexpr std::int64_t max_fence = std::int64_t{1} << 62;

/// Keeps the server's counter of fences above the server's clock: each connection lifts it, and now and then an
/// operation does that takes a fence.
///
/// Thread safety: `take_turn` may be called from any thread; all else from the client's strand.
class fence_anchor
{
public:
    explicit fence_anchor(const settings& config) noexcept : config_(config) {}

    /// True once per interval: whoever gets that is to lift the counter.
    [[nodiscard]] bool take_turn(lease_clock::time_point now) noexcept
    {
        auto last = lifted_.load(std::memory_order_relaxed);
        const auto time = now.time_since_epoch().count();
        return time - last >= interval.count() &&
               lifted_.compare_exchange_strong(last, time, std::memory_order_relaxed);
    }
    /// It was lifted by something else.
    void note_lifted(lease_clock::time_point now) noexcept
    {
        lifted_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    }

    /// As the next command: lifts the counter to the server's clock.
    void push(boost::redis::request& request, script::form sent) const
    {
        scripts::get().anchor.push(request, sent, 1, config_.fence_key, highest_);
    }
    /// Whether a grant may have that fence. If so, the counter is kept above it from now on.
    [[nodiscard]] bool accept(std::int64_t given) noexcept
    {
        // An operator has to lower the counter, and it is not lifted again.
        if (given > max_fence)
            highest_ = 0;
        if (given < least_fence || given > max_fence)
            return false;
        highest_ = std::max(highest_, given);
        return true;
    }

private:
    static constexpr lease_clock::duration interval = std::chrono::seconds(1);

    const settings& config_;
    std::atomic<lease_clock::rep> lifted_{0};
    /// Of all that were given here: a server that a failover has promoted may know less, and have an earlier clock.
    std::int64_t highest_ = 0;
};

} // namespace colock::redis::detail
