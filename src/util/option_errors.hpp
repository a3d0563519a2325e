// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace colock::inline v0::detail {

/// Formats a duration for messages, in the largest unit that gives a whole number: "30 s", "1500 ms", "3650 days".
[[nodiscard]] std::string in_words(std::chrono::milliseconds span);

/// \throws validation_error `invalid_options`
/// \param text names the option, the problem of its value, and a valid alternative. Must not contain any part of a URL
///     or a password.
[[noreturn]] void refuse_options(std::string_view backend, std::string text);

/// \throws validation_error if the value is less than `from` or more than `to`
void check_range(std::string_view backend, std::string_view name, std::chrono::milliseconds value,
    std::chrono::milliseconds from, std::chrono::milliseconds to);

} // namespace colock::inline v0::detail
