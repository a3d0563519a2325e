// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::quorum {

/// Joins the parts of all nodes. Each is preceded by its length, which is 0 for a node that has not granted the lock.
[[nodiscard]] std::string join_tickets(const std::vector<std::string>& parts);

/// Returns the part of each node, or nothing if this is not a ticket for as many nodes.
[[nodiscard]] std::optional<std::vector<std::string>> split_tickets(std::string_view joined, std::size_t nodes);

} // namespace colock::inline v0::quorum
