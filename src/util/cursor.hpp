// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/outcome.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace colock::detail {

// Where the next page of a list begins: the name of the backend, a colon, and what that backend makes of it. Users keep
// it in between, so that it may come back as anything.

[[nodiscard]] std::string make_cursor(std::string_view backend, std::string_view where);
/// Nothing for what is not that backend's, or too long to be.
[[nodiscard]] std::optional<std::string_view> read_cursor(std::string_view backend, std::string_view cursor);
[[nodiscard]] failure_ptr not_a_cursor(std::string_view backend);

/// All of the text as a number.
[[nodiscard]] std::optional<std::uint64_t> read_number(std::string_view text, int base = 10);

} // namespace colock::detail
