// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

namespace colock::inline v0::detail {

/// Stores the response times of the backend's last answers. Decides whether an unanswered request is overdue, which
/// shows that the backend does not respond.
///
/// Thread safety: none; guarded by the mutex of the core.
class answer_times
{
public:
    /// Adds the response time of a request.
    void add(lease_clock::duration took) noexcept { latest_[next_++ % latest_.size()] = took; }

    /// Returns whether a request sent at `sent_at` has waited for at least `min_overdue_age`, and for at least twice
    /// the longest of the last response times.
    [[nodiscard]] bool is_overdue(lease_clock::time_point sent_at, lease_clock::time_point now) const noexcept
    {
        const auto longest = *std::max_element(latest_.begin(), latest_.end());
        return now - sent_at >= std::max<lease_clock::duration>(min_overdue_age, 2 * longest);
    }

private:
    static constexpr auto min_overdue_age = std::chrono::milliseconds(100);

    std::array<lease_clock::duration, 16> latest_{};
    std::size_t next_ = 0;
};

} // namespace colock::inline v0::detail
