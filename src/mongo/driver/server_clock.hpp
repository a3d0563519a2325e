// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace colock::inline v0::mongo::detail {

/// The end of the year 9999 in milliseconds. Not all programs can read later dates.
inline constexpr std::int64_t max_time = 253'402'300'799'999;

/// Limits of a server's time, in milliseconds.
struct server_time
{
    /// Lower limit. A lease is over only if it has expired at this time.
    std::int64_t earliest = 0;
    std::int64_t latest = 0;
};

/// Estimates a server's clock from times that the server has reported. The client's own clock is never sent to a
/// server. Each estimate is a limit, and holds unless the server's clock was set since.
///
/// Thread safety: none.
class server_clock
{
public:
    /// \param server_time time in a reply of the server, in milliseconds
    /// \param sent_at time at which the request was sent
    /// \param received_at time at which the reply had arrived
    void update(std::int64_t server_time, lease_clock::time_point sent_at, lease_clock::time_point received_at) noexcept
    {
        last_reported_ = server_time;
        sent_at_ = sent_at;
        received_at_ = received_at;
    }
    /// Returns the latest time that the server's clock may show at `time`, in milliseconds.
    [[nodiscard]] std::int64_t latest(lease_clock::time_point time) const noexcept
    {
        return last_reported_ + std::chrono::ceil<std::chrono::milliseconds>(time - sent_at_).count();
    }
    /// Returns the earliest time that the server's clock may show at `time`, in milliseconds. The server's report may
    /// have been on its way until it was received.
    [[nodiscard]] std::int64_t earliest(lease_clock::time_point time) const noexcept
    {
        return last_reported_ + std::chrono::floor<std::chrono::milliseconds>(time - received_at_).count();
    }

    /// Returns by how many milliseconds this clock is certainly ahead of another clock. Negative: it is behind.
    [[nodiscard]] std::int64_t lead_over(const server_clock& other) const noexcept
    {
        const auto time = std::max(received_at_, other.received_at_);
        const auto min_lead = earliest(time) - other.latest(time);
        return min_lead > 0 ? min_lead : std::min<std::int64_t>(latest(time) - other.earliest(time), 0);
    }

    [[nodiscard]] lease_clock::duration age(lease_clock::time_point now) const noexcept { return now - sent_at_; }
    /// The last time that the server has reported: a lower bound of the server's time, unless its clock was set since.
    [[nodiscard]] std::int64_t last_reported() const noexcept { return last_reported_; }

private:
    std::int64_t last_reported_ = 0;
    lease_clock::time_point sent_at_{};
    lease_clock::time_point received_at_{};
};

} // namespace colock::inline v0::mongo::detail
