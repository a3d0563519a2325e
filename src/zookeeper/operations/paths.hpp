// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/settings.hpp"

#include <colock/spi/claim.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace colock::inline v0::zookeeper::detail {

/// Returns the folder that contains the folder of the key.
[[nodiscard]] std::string bucket_folder(const settings& config, std::string_view key);
/// Returns the folder of a key, which contains the nodes of its holders and waiters.
[[nodiscard]] std::string key_folder(const settings& config, std::string_view key);
/// Returns the common prefix of the names of a claim's nodes.
[[nodiscard]] std::string claim_prefix(const settings& config, const claim& claim);
/// Returns the folder that contains the folders of all groups.
[[nodiscard]] std::string groups_folder(const settings& config);
/// Returns the folder of a group, which contains the index nodes of its claims.
[[nodiscard]] std::string group_folder(const settings& config, std::string_view id);
/// Returns whether the claim has an index node: it belongs to a group, and the layout is the standard one. Nodes of
/// other layouts contain no data, and so no group.
[[nodiscard]] bool is_grouped(const settings& config, const claim& claim) noexcept;
/// Returns the path of the claim's index node.
[[nodiscard]] std::string index_path(const settings& config, const claim& claim);
/// Returns the key in the name of an index node; nullopt if the name is not one of an index node.
[[nodiscard]] std::optional<std::string> indexed_key(std::string_view name);
[[nodiscard]] std::string child_path(std::string_view folder, std::string_view name);

} // namespace colock::inline v0::zookeeper::detail
