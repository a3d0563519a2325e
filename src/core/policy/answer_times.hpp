// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

namespace colock::inline v0::detail {

/// Stores how long the backend took for its last answers, and decides when a request without an answer shows that the
/// backend does not respond.
///
/// Thread safety: none; guarded by the shard's mutex.
class answer_times
{
public:
    void add(lease_clock::duration took) noexcept { latest_[next_++ % latest_.size()] = took; }

    /// Whether a request sent at `sent` is older than twice the longest of the last answer times, and older than
    /// `min_patience`.
    [[nodiscard]] bool is_overdue(lease_clock::time_point sent, lease_clock::time_point now) const noexcept
    {
        const auto longest = *std::max_element(latest_.begin(), latest_.end());
        return now - sent >= std::max<lease_clock::duration>(min_patience, 2 * longest);
    }

private:
    static constexpr auto min_patience = std::chrono::milliseconds(100);

    std::array<lease_clock::duration, 16> latest_{};
    std::size_t next_ = 0;
};

} // namespace colock::inline v0::detail
