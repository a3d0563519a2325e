// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "command/backend.hpp"
#include "command/doctor/checks.hpp"
#include "command/doctor/lock_probe.hpp"

#include <iterator>
#include <vector>

namespace command {

// Each of these functions queries the servers that the URL names, by connections of its own, and returns the lines
// about them. The URL is valid, because an adapter was made from it. `probe` is what was seen while a lock was used.

[[nodiscard]] std::vector<finding> examine_redis(const backend_address& address, const lock_probe& probe);
[[nodiscard]] std::vector<finding> examine_zookeeper(const backend_address& address, const lock_probe& probe);
[[nodiscard]] std::vector<finding> examine_mongo(const backend_address& address, const lock_probe& probe);

/// Adds lines to a report.
inline void append(std::vector<finding>& lines, std::vector<finding> others)
{
    lines.insert(lines.end(), std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
}

} // namespace command
