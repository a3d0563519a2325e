// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <chrono>
#include <cstdint>

namespace colock::mongo::detail {

/// What a server's clock shows, as far as it has told us: no clock of ours is ever sent.
///
/// Thread safety: none.
class server_clock
{
public:
    /// \param milliseconds that it has shown after it was asked
    void heard(std::int64_t milliseconds, lease_clock::time_point asked) noexcept
    {
        told_ = milliseconds;
        asked_ = asked;
    }
    /// At the latest, in milliseconds; unless the clock was set since.
    [[nodiscard]] std::int64_t at(lease_clock::time_point when) const noexcept
    {
        return told_ + std::chrono::ceil<std::chrono::milliseconds>(when - asked_).count();
    }

    [[nodiscard]] lease_clock::duration age(lease_clock::time_point now) const noexcept { return now - asked_; }
    /// What was told: it was that much at least, unless the clock was set since.
    [[nodiscard]] std::int64_t told() const noexcept { return told_; }

private:
    std::int64_t told_ = 0;
    lease_clock::time_point asked_{};
};

} // namespace colock::mongo::detail
