// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

namespace command {

/// Returns the duration in milliseconds, with two digits after the point.
[[nodiscard]] inline std::string milliseconds_text(std::chrono::steady_clock::duration duration)
{
    char text[32];
    static_cast<void>(
        std::snprintf(text, sizeof text, "%.2f", std::chrono::duration<double, std::milli>(duration).count()));
    return text;
}

} // namespace command
