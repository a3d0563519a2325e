// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/reply.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::redis::detail {

// Checks of the server's version and settings by its reply to INFO.

/// Returns the value of a field of INFO, or an empty view if there is no such field.
[[nodiscard]] std::string_view info_field(std::string_view info, std::string_view name);

/// Returns whether the server is older than Redis 6.2; false if its version is unknown.
[[nodiscard]] bool is_too_old(std::string_view info);
/// Returns whether the server has replicas.
[[nodiscard]] bool has_replicas(const reply& info);
/// Returns warnings about settings that make locks less safe.
[[nodiscard]] std::vector<std::string> settings_warnings(const reply& info);

} // namespace colock::inline v0::redis::detail
