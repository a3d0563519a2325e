// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <chrono>
#include <cstdint>

namespace colock::inline v0::mongo::detail {

/// Estimates a server's clock from times that the server has reported. The client's own clock is never sent to a
/// server.
///
/// Thread safety: none.
class server_clock
{
public:
    /// \param server_time time in a reply of the server, in milliseconds
    /// \param sent_at time at which the request was sent
    void update(std::int64_t server_time, lease_clock::time_point sent_at) noexcept
    {
        last_reported_ = server_time;
        sent_at_ = sent_at;
    }
    /// Upper bound of the server's time at `when`, in milliseconds, unless the server's clock was set since.
    [[nodiscard]] std::int64_t at(lease_clock::time_point when) const noexcept
    {
        return last_reported_ + std::chrono::ceil<std::chrono::milliseconds>(when - sent_at_).count();
    }

    [[nodiscard]] lease_clock::duration age(lease_clock::time_point now) const noexcept { return now - sent_at_; }
    /// The last time that the server has reported: a lower bound of the server's time, unless its clock was set since.
    [[nodiscard]] std::int64_t last_reported() const noexcept { return last_reported_; }

private:
    std::int64_t last_reported_ = 0;
    lease_clock::time_point sent_at_{};
};

} // namespace colock::inline v0::mongo::detail
