// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/outcome.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace colock::inline v0::detail {

// A cursor identifies the next page of a list. It consists of the name of the backend, a colon, and data of the
// backend. Users store cursors between calls, so any string may be passed in.

[[nodiscard]] std::string make_cursor(std::string_view backend, std::string_view where);
/// Returns the backend's part of the cursor. Empty if the cursor does not belong to the backend or is too long.
[[nodiscard]] std::optional<std::string_view> read_cursor(std::string_view backend, std::string_view cursor);
[[nodiscard]] failure_ptr not_a_cursor(std::string_view backend);

/// Parses the whole text as a number.
[[nodiscard]] std::optional<std::uint64_t> read_number(std::string_view text, int base = 10);

} // namespace colock::inline v0::detail
