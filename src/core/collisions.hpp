// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <cstddef>

namespace colock::detail {

/// How long one group keeps out of the way of others, so that those that run into each other in step fall out of it.
/// Knows no I/O and reads no clock: it is told the time.
class collisions
{
public:
    using time_point = lease_clock::time_point;
    using duration = lease_clock::duration;

    /// A round, which took something, then found a key busy after `requests` round trips. The first in a row costs
    /// nothing; from the second on there is a random pause of at most one round trip, then two, four, ... up to
    /// `longest`.
    ///
    /// A loss is one of a row if its round began soon after the one before: as soon as a single rival would have been
    /// out of the way. Among many rivals it takes longer until the next round, so each loss that comes too late for
    /// its row makes the next one's span twice as long, up to `longest`: who holds a key for longer is no rival.
    void lost(time_point began, time_point now, std::size_t requests, duration longest);

    /// Not to try before; counted from the loss, so that it costs nothing where the key stays busy for longer.
    [[nodiscard]] time_point resume_at() const noexcept { return resume_at_; }
    [[nodiscard]] std::size_t in_a_row() const noexcept { return in_a_row_; }

private:
    std::size_t in_a_row_ = 0;
    /// A round that begins later did not run into the one of the last rival.
    time_point row_ends_{};
    /// How often a loss came too late for a row.
    std::size_t late_ = 0;
    time_point resume_at_{};
};

} // namespace colock::detail
