// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/collisions.hpp"

#include "core/jitter.hpp"

#include <algorithm>

namespace colock::detail {

namespace {

using std::chrono::microseconds;

/// For a backend that answers at once, and a clock that has not moved meanwhile.
constexpr lease_clock::duration shortest_trip = microseconds(100);

/// Until it reaches `enough`.
lease_clock::duration doubled(lease_clock::duration span, std::size_t times, lease_clock::duration enough)
{
    for (; times > 0 && span < enough; --times)
        span *= 2;
    return span;
}

} // namespace

void collisions::lost(time_point began, time_point now, std::size_t requests, duration longest)
{
    if (began <= row_ends_) {
        ++in_a_row_;
    } else {
        // The first of all is late for nothing.
        late_ += in_a_row_ > 0 ? 1 : 0;
        in_a_row_ = 1;
    }
    duration bound = duration::zero();
    if (in_a_row_ > 1) {
        const auto trip =
            std::max((now - began) / static_cast<duration::rep>(std::max<std::size_t>(requests, 1)), shortest_trip);
        bound = std::min(doubled(trip, in_a_row_ - 2, longest), longest);
    }
    // Evenly from nothing to the bound.
    resume_at_ = saturating_add(now, spread(bound / 2, 1.0));
    // A rival needs a round of its own, its own pause, and to give all back.
    row_ends_ = saturating_add(now, doubled(2 * (now - began + bound) + shortest_trip, late_, longest));
}

} // namespace colock::detail
