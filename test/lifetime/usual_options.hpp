// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/options.hpp>
#include <colock/retry_policy.hpp>

#include <chrono>

namespace colock::testing {

inline const acquire_options shared{.mode = lock_mode::shared};
inline const acquire_options endless{.ttl = std::chrono::milliseconds(0)};
inline const retry_policy every_second = retry_policy::fixed(std::chrono::seconds(1)).jitter(0);
inline const retry_policy rarely = retry_policy::fixed(std::chrono::hours(24)).jitter(0);

} // namespace colock::testing
