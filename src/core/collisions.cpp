// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/collisions.hpp"

#include "core/jitter.hpp"

#include <algorithm>

namespace colock::detail {

namespace {

using std::chrono::microseconds;

/// For a backend that answers at once, and a clock that has not moved meanwhile.
constexpr lease_clock::duration shortest_trip = microseconds(100);

} // namespace

void collisions::lost(time_point began, time_point now, std::size_t requests, duration longest)
{
    in_a_row_ = began <= row_ends_ ? in_a_row_ + 1 : 1;
    duration bound = duration::zero();
    if (in_a_row_ > 1) {
        bound = std::max((now - began) / static_cast<duration::rep>(std::max<std::size_t>(requests, 1)), shortest_trip);
        for (std::size_t more = in_a_row_ - 2; more > 0 && bound < longest; --more)
            bound *= 2;
        bound = std::min(bound, longest);
    }
    // Evenly from nothing to the bound.
    resume_at_ = saturating_add(now, spread(bound / 2, 1.0));
    // A rival needs a round of its own, its own pause, and to give all back; who holds the key for longer is none.
    row_ends_ = saturating_add(now, 2 * (now - began + bound) + shortest_trip);
}

} // namespace colock::detail
