// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/policy/deadlines.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace colock::inline v0::remote {

namespace {

using namespace std::chrono_literals;

/// If the timer event is later than this, the event loop was not running.
constexpr lease_clock::duration max_lateness = 250ms;

} // namespace

lease_clock::duration deadlines::check_interval() const noexcept
{
    return std::clamp<lease_clock::duration>(timeout_ / 20, 5ms, 100ms);
}

lease_clock::duration deadlines::stall_time(lease_clock::time_point due, lease_clock::time_point now) noexcept
{
    return now - due > max_lateness ? now - due : lease_clock::duration::zero();
}

failure_ptr deadlines::overdue_failure(delivery status, const failure_ptr& connection_failure)
{
    if (status == delivery::unanswered)
        return make_failure(errc::outcome_unknown, "no answer within the operation timeout");
    auto detail = "not sent within the operation timeout" +
                  (connection_failure ? ": " + connection_failure->detail : std::string());
    return make_failure(
        errc::unavailable, std::move(detail), connection_failure ? connection_failure->cause : error_code());
}

} // namespace colock::inline v0::remote
