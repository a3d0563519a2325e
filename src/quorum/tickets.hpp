// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "quorum/node_claim.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::quorum {

/// Joins the tickets of all nodes. Each is preceded by its length.
[[nodiscard]] std::string join_tickets(const std::vector<std::shared_ptr<node_claim>>& node_claims);

/// Returns nothing unless the ticket has a part for each node.
[[nodiscard]] std::optional<std::vector<std::string>> split_tickets(std::string_view joined, std::size_t nodes);

} // namespace colock::inline v0::quorum
