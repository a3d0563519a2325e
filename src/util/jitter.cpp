// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "util/jitter.hpp"

#include <random>

namespace colock::inline v0::detail {

lease_clock::duration spread(lease_clock::duration delay, double fraction)
{
    if (fraction <= 0.0)
        return delay;
    thread_local std::minstd_rand engine{std::random_device{}()};
    // A uniform number from -1 to 1. It is computed without std::uniform_real_distribution, which computes a logarithm
    // for each number.
    constexpr auto range = static_cast<double>(std::minstd_rand::max() - std::minstd_rand::min());
    const double uniform = 2.0 * static_cast<double>(engine() - std::minstd_rand::min()) / range - 1.0;
    const double result = static_cast<double>(delay.count()) * (1.0 + fraction * uniform);
    return result >= static_cast<double>(lease_clock::duration::max().count())
               ? lease_clock::duration::max()
               : lease_clock::duration(static_cast<lease_clock::rep>(result));
}

} // namespace colock::inline v0::detail
