// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <algorithm>
#include <chrono>

namespace colock::inline v0::remote {

/// Default of `adapter::max_clock_lead` if no option sets it: a tenth of the ttl, at most 250 ms.
[[nodiscard]] constexpr std::chrono::milliseconds default_clock_lead(std::chrono::milliseconds ttl) noexcept
{
    return std::min(std::chrono::milliseconds(250), ttl / 10);
}

} // namespace colock::inline v0::remote
