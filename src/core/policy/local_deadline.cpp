// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/policy/local_deadline.hpp"

namespace colock::inline v0::detail {

using namespace std::chrono_literals;

lease_clock::time_point local_deadline(const lease_request& request) noexcept
{
    if (request.ttl == 0ms)
        return lease_clock::time_point::max();
    // The margin covers clock rates that differ by one percent, and rounding by a millisecond in each direction.
    const lease_clock::duration margin = lease_clock::duration(request.ttl) / 100 + 2ms;
    return saturating_add(request.sent_at, lease_clock::duration(request.ttl - request.clock_lead) - margin);
}

} // namespace colock::inline v0::detail
