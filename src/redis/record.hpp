// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/claim.hpp>
#include <colock/status.hpp>

#include <boost/redis/request.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace colock::redis::detail {

/// What stands behind the token in a lock's value: for people and tools, decided on by nobody.
///
/// Eleven hexadecimal digits of the holder's wall clock in milliseconds, then owner, host, comment and group with a NUL
/// between them.
struct record
{
    std::int64_t created = 0;
    owner_data owner{};
};

[[nodiscard]] std::int64_t wall_clock_ms() noexcept;
/// Appends token and record.
void append_value(std::string& to, const claim& of, std::int64_t created);
/// What is not ours, such as nothing at all, has no record.
[[nodiscard]] std::optional<record> parse_record(std::string_view text);

/// Pushes a command whose arguments are in a container.
void push_all(boost::redis::request& request, const std::vector<std::string_view>& words);

} // namespace colock::redis::detail
