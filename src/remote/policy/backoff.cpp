// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/policy/backoff.hpp"

#include "util/jitter.hpp"

#include <algorithm>

namespace colock::inline v0::remote {

namespace {

constexpr lease_clock::duration first_delay = std::chrono::milliseconds(100);
constexpr unsigned max_doublings = 4;
constexpr double jitter = 0.5;

} // namespace

lease_clock::duration backoff::next()
{
    const auto doublings = std::min(failures_, max_doublings);
    failures_ = doublings + 1;
    return colock::detail::spread(first_delay * (1 << doublings), jitter);
}

} // namespace colock::inline v0::remote
