// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace colock::inline v0::detail {

// A cursor identifies the next page of a list. It consists of the name of the backend, a colon, and data of the
// backend. Users store cursors between calls, so any string may be passed in.

/// Starts a listing for a user. The adapter receives the cursor without the name of the backend, and the user receives
/// only the locks that match the filter.
void start_listing(adapter& backend, listing_request request, completion<list_outcome> done);
[[nodiscard]] failure_ptr not_a_cursor(std::string_view backend);

/// Parses the whole text as a number.
[[nodiscard]] std::optional<std::uint64_t> read_number(std::string_view text, int base = 10);

} // namespace colock::inline v0::detail
