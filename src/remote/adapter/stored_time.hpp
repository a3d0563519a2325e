// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace colock::inline v0::remote {

/// Converts a stored time in milliseconds since 1970. A time before 1970 or after the range of `system_clock` is
/// clamped, because another program may have stored any value. The difference from the current time does not overflow.
[[nodiscard]] inline std::chrono::system_clock::time_point stored_time(std::int64_t milliseconds) noexcept
{
    using std::chrono::system_clock;
    constexpr std::chrono::milliseconds earliest{0};
    constexpr auto latest = std::chrono::floor<std::chrono::milliseconds>(system_clock::duration::max());
    return system_clock::time_point(std::clamp(std::chrono::milliseconds(milliseconds), earliest, latest));
}

} // namespace colock::inline v0::remote
