// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>
#include <colock/status.hpp>

#include "memory/table.hpp"

#include <algorithm>
#include <chrono>

namespace colock::inline v0::memory {

/// Makes the lock_status of holders, with wall-clock times. All times are converted by one pair of clock readings.
class status_builder
{
public:
    [[nodiscard]] lease_clock::time_point now() const noexcept { return now_; }

    [[nodiscard]] lock_status status(const entry& at, const holder& held) const
    {
        const owner_data& data = held.data();
        lock_status status;
        status.key = at.key;
        status.group = data.group;
        status.mode = at.mode;
        status.owner = data.owner;
        status.host = data.host;
        status.comment = data.comment;
        status.created = wall_time(held.created);
        status.renewed = wall_time(held.renewed);
        if (held.expires != lease_clock::time_point::max())
            status.remaining = std::chrono::ceil<std::chrono::milliseconds>(std::max(held.expires, now_) - now_);
        status.fence = held.fence;
        return status;
    }

private:
    [[nodiscard]] std::chrono::system_clock::time_point wall_time(lease_clock::time_point time) const
    {
        return std::chrono::time_point_cast<std::chrono::system_clock::duration>(wall_now_ - (now_ - time));
    }

    const lease_clock::time_point now_ = lease_clock::now();
    const std::chrono::system_clock::time_point wall_now_ = std::chrono::system_clock::now();
};

} // namespace colock::inline v0::memory
