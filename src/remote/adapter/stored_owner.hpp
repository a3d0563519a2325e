// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/claim.hpp>
#include <colock/status.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace colock::remote {

/// What stands in a backend beside a lock's token: for people and tools, decided on by nobody.
///
/// Eleven hexadecimal digits of the holder's wall clock in milliseconds, then owner, host, comment and group with a NUL
/// between them.
struct stored_owner
{
    std::int64_t created = 0;
    owner_data owner{};
};

[[nodiscard]] std::int64_t wall_clock_ms() noexcept;
[[nodiscard]] std::size_t stored_owner_size(const owner_data& owner) noexcept;
void append_stored_owner(std::string& to, const owner_data& owner, std::int64_t created);
/// Nothing for what is not ours, such as nothing at all.
[[nodiscard]] std::optional<stored_owner> parse_stored_owner(std::string_view text);
/// Where it belongs in a status.
void fill(lock_status& status, stored_owner from);

} // namespace colock::remote
