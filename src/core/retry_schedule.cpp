// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/retry_schedule.hpp"

#include <random>

namespace colock::detail {

lease_clock::duration spread(lease_clock::duration delay, double fraction)
{
    if (fraction <= 0.0)
        return delay;
    thread_local std::minstd_rand engine{std::random_device{}()};
    // From -1 to 1; a distribution of the standard library takes a logarithm for each number.
    constexpr auto range = static_cast<double>(std::minstd_rand::max() - std::minstd_rand::min());
    const double even = 2.0 * static_cast<double>(engine() - std::minstd_rand::min()) / range - 1.0;
    const double spread = static_cast<double>(delay.count()) * (1.0 + fraction * even);
    return spread >= static_cast<double>(lease_clock::duration::max().count())
               ? lease_clock::duration::max()
               : lease_clock::duration(static_cast<lease_clock::rep>(spread));
}

retry_schedule::retry_schedule(const retry_policy& policy, time_point start) noexcept
    : policy_(&policy), start_(start), next_at_(start),
      deadline_(policy.max_time() ? saturating_add(start, *policy.max_time()) : time_point::max())
{
}

bool retry_schedule::failed(time_point now)
{
    const auto delay = policy_->delay_after({attempts_, start_, previous_});
    ++attempts_;
    if (!delay)
        return false;
    previous_ = *delay;
    next_at_ = saturating_add(now, spread(*delay, policy_->jitter()));
    return true;
}

} // namespace colock::detail
