// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/claim.hpp>
#include <colock/status.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace colock::inline v0::remote {

/// The data that a backend stores with a lock's token. They are for people and tools, and do not affect any decision.
///
/// Format: eleven hexadecimal digits with the holder's wall-clock time in milliseconds, followed by owner, host,
/// comment and group, separated by NULs.
struct stored_owner
{
    std::int64_t created = 0;
    owner_data owner{};
};

[[nodiscard]] std::int64_t wall_clock_ms() noexcept;
[[nodiscard]] std::size_t stored_owner_size(const owner_data& owner) noexcept;
void append_stored_owner(std::string& to, const owner_data& owner, std::int64_t created);
/// Returns an empty optional if the text does not start with eleven hexadecimal digits, for example because another
/// program has written it.
[[nodiscard]] std::optional<stored_owner> parse_stored_owner(std::string_view text);
/// Copies the data to the fields of a status.
void fill(lock_status& status, stored_owner from);

} // namespace colock::inline v0::remote
