// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <string>
#include <string_view>

namespace colock::detail {

/// The same text for one line of a log: control characters and what is no UTF-8 as `\xNN`.
[[nodiscard]] std::string printable(std::string_view text);

/// Between quotes, which are escaped in it, and cut where it has more than `longest` bytes; then its length is told.
[[nodiscard]] std::string quoted(std::string_view text, std::size_t longest = 80);

} // namespace colock::detail
