// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/retry_policy.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace colock::inline v0 {

retry_policy retry_policy::make_fixed(lease_clock::duration delay)
{
    retry_policy policy;
    policy.has_delays_ = true;
    policy.first_ = delay;
    policy.jitter_ = default_jitter;
    return policy;
}

retry_policy retry_policy::make_linear(lease_clock::duration first, lease_clock::duration step)
{
    retry_policy policy;
    policy.has_delays_ = true;
    policy.first_ = first;
    policy.step_ = step;
    policy.jitter_ = 0.0;
    return policy;
}

retry_policy retry_policy::make_exponential(lease_clock::duration first, double factor, lease_clock::duration cap)
{
    retry_policy policy;
    policy.has_delays_ = true;
    policy.first_ = first;
    policy.factor_ = factor;
    policy.cap_ = cap;
    policy.jitter_ = 0.0;
    return policy;
}

retry_policy retry_policy::custom(retry_function function)
{
    retry_policy policy;
    policy.has_delays_ = true;
    policy.is_custom_ = true;
    policy.jitter_ = 0.0;
    if (function)
        policy.function_ = std::make_shared<const retry_function>(std::move(function));
    return policy;
}

retry_policy retry_policy::forever()
{
    return fixed(std::chrono::seconds(2));
}

retry_policy retry_policy::never()
{
    return fixed(lease_clock::duration::zero()).times(0);
}

retry_policy& retry_policy::jitter(double fraction) &
{
    jitter_ = fraction;
    return *this;
}

retry_policy&& retry_policy::jitter(double fraction) &&
{
    return std::move(jitter(fraction));
}

retry_policy& retry_policy::times(std::size_t n) &
{
    times_ = n;
    return *this;
}

retry_policy&& retry_policy::times(std::size_t n) &&
{
    return std::move(times(n));
}

retry_policy retry_policy::with_defaults(const retry_policy& defaults) const
{
    if (has_delays_)
        return *this;
    retry_policy result = defaults;
    if (jitter_)
        result.jitter_ = jitter_;
    if (times_)
        result.times_ = times_;
    if (total_)
        result.total_ = total_;
    return result;
}

std::string retry_policy::problem() const
{
    using namespace std::chrono;
    const auto in_ms = [](lease_clock::duration span) {
        return std::to_string(duration_cast<milliseconds>(span).count()) + " ms";
    };
    if (is_custom_ && !function_)
        return "the custom retry function is empty; give one that can be called";
    if (first_ < first_.zero())
        return "the delay is " + in_ms(first_) + "; give zero or more";
    if (step_ < step_.zero())
        return "the step is " + in_ms(step_) + "; give zero or more";
    if (!std::isfinite(factor_) || factor_ < 1.0)
        return "the factor is " + std::to_string(factor_) + "; give at least 1";
    if (cap_ < first_)
        return "the cap of " + in_ms(cap_) + " is below the first delay of " + in_ms(first_) + "; raise the cap";
    if (!(jitter() >= 0.0 && jitter() <= 1.0))
        return "the jitter is " + std::to_string(jitter()) + "; give a fraction from 0 to 1";
    if (is_custom_ && jitter() > 0.0)
        return "a custom function's delays are taken as they are; add the jitter inside the function";
    if (total_ && *total_ <= total_->zero())
        return "the total time is " + in_ms(*total_) + "; give more than zero, or use never() for a single attempt";
    return {};
}

std::optional<lease_clock::duration> retry_policy::delay_after(const retry_attempt& attempt) const
{
    if (times_ && attempt.number >= *times_)
        return std::nullopt;
    if (function_)
        return (*function_)(attempt).delay();
    // Computed as doubles, which saturate instead of overflowing. The rounding is far below the jitter.
    const double number = static_cast<double>(attempt.number);
    // Limited to a finite value, because infinity times a first delay of zero is not a number.
    const double growth = std::min(std::pow(factor_, number), std::numeric_limits<double>::max());
    const double delay = static_cast<double>(first_.count()) * growth + static_cast<double>(step_.count()) * number;
    return delay >= static_cast<double>(cap_.count()) ? cap_
                                                      : lease_clock::duration(static_cast<lease_clock::rep>(delay));
}

} // namespace colock::inline v0
