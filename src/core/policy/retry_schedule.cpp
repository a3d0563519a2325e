// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/policy/retry_schedule.hpp"

#include "util/jitter.hpp"

namespace colock::inline v0::detail {

retry_schedule::retry_schedule(const retry_policy& policy, time_point start) noexcept
    : policy_(&policy), start_(start), next_at_(start),
      deadline_(policy.max_time() ? saturating_add(start, *policy.max_time()) : time_point::max())
{
}

bool retry_schedule::on_failed(time_point now)
{
    const auto delay = policy_->delay_after({attempts_, start_, previous_});
    ++attempts_;
    if (!delay)
        return false;
    previous_ = *delay;
    next_at_ = saturating_add(now, spread(*delay, policy_->jitter()));
    return true;
}

} // namespace colock::inline v0::detail
