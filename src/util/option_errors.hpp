// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace colock::detail {

/// For messages.
[[nodiscard]] std::string in_words(std::chrono::milliseconds span);

/// \throws validation_error `invalid_options`
/// \param why names the option, says what is wrong with the value that was given, and what to give instead. Of an URL
/// or a password it repeats nothing.
[[noreturn]] void refuse_options(std::string_view backend, std::string why);

/// \throws validation_error if the value is less than `from` or more than `to`
void check_range(std::string_view backend, std::string_view name, std::chrono::milliseconds value,
    std::chrono::milliseconds from, std::chrono::milliseconds to);

} // namespace colock::detail
