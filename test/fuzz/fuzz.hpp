// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

/// The function that libFuzzer calls with each input.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace colock::testing {

[[nodiscard]] inline std::string_view text_of(const std::uint8_t* data, std::size_t size) noexcept
{
    return {reinterpret_cast<const char*>(data), size};
}

/// Ends the process if the condition does not hold, so that libFuzzer stores the input.
inline void require(bool condition, std::string_view promise)
{
    if (condition)
        return;
    std::cerr << "broken promise: " << promise << '\n';
    std::abort();
}

} // namespace colock::testing
