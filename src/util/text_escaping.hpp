// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string>
#include <string_view>

namespace colock::inline v0::detail {

/// Returns the text as one line for a log. Control characters and bytes that are not valid UTF-8 are written as `\xNN`.
[[nodiscard]] std::string printable(std::string_view text);

/// Returns the text in quotes, with quotes in the text escaped. A text of more than `max_size` bytes is cut, and its
/// length is appended.
[[nodiscard]] std::string quoted(std::string_view text, std::size_t max_size = 80);

/// Returns the text as a string of JSON, with its quotes. Control characters are escaped. Each byte that is not valid
/// UTF-8 is replaced by U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);

} // namespace colock::inline v0::detail
