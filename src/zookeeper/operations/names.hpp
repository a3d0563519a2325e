// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/adapter/stored_owner.hpp"
#include "zookeeper/recipe/names.hpp"
#include "zookeeper/settings.hpp"

#include <colock/spi/claim.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace colock::inline v0::zookeeper::detail {

/// Returns the folder that contains the folder of the key.
[[nodiscard]] std::string bucket_folder(const settings& config, std::string_view key);
/// Returns the folder of a key, which contains the nodes of its holders and waiters.
[[nodiscard]] std::string key_folder(const settings& config, std::string_view key);
[[nodiscard]] role role_of(const claim& of) noexcept;
/// Returns the common prefix of the names of a claim's nodes.
[[nodiscard]] std::string claim_prefix(const settings& config, const claim& of);
/// Returns the folder that contains the folders of all groups.
[[nodiscard]] std::string groups_folder(const settings& config);
/// Returns the folder of a group, which contains the index nodes of its claims.
[[nodiscard]] std::string group_folder(const settings& config, std::string_view id);
/// Returns whether the claim has an index node: it belongs to a group, and the layout is the standard one. Nodes of
/// other layouts contain no data, and so no group.
[[nodiscard]] bool is_grouped(const settings& config, const claim& of) noexcept;
/// Returns the path of the claim's index node.
[[nodiscard]] std::string index_path(const settings& config, const claim& of);
/// Returns the key in the name of an index node; nullopt if the name is not one of an index node.
[[nodiscard]] std::optional<std::string> indexed_key(std::string_view name);
[[nodiscard]] std::string child_path(std::string_view folder, std::string_view name);

/// Data of a node.
struct node_data
{
    /// Time to live; 0: the lock is held until it is released.
    std::chrono::milliseconds ttl{};
    std::size_t max_holders = 0;
    remote::stored_owner who{};
};
[[nodiscard]] std::string to_text(const claim& of, std::chrono::milliseconds ttl);
/// Returns nullopt if the data was not written by this library.
[[nodiscard]] std::optional<node_data> parse_node_data(std::string_view text);

} // namespace colock::inline v0::zookeeper::detail
