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

namespace colock::zookeeper::detail {

/// Returns the folder that contains the folder of the key.
[[nodiscard]] std::string bucket_folder(const settings& config, std::string_view key);
/// Returns the folder of a key, which contains the nodes of its holders and waiters.
[[nodiscard]] std::string key_folder(const settings& config, std::string_view key);
[[nodiscard]] role role_of(const claim& of) noexcept;
/// Returns the common prefix of the names of a claim's nodes.
[[nodiscard]] std::string claim_prefix(const settings& config, const claim& of);
/// Return the folder that contains the indexes of all groups, and the folder of one group's index.
[[nodiscard]] std::string groups_folder(const settings& config);
[[nodiscard]] std::string group_folder(const settings& config, std::string_view id);
/// Return whether a claim has an index node, and its path. In other layouts the data of a node names no group.
[[nodiscard]] bool is_grouped(const settings& config, const claim& of) noexcept;
[[nodiscard]] std::string index_path(const settings& config, const claim& of);
/// Returns the key in the name of an index node; nullopt if the name is not one of an index node.
[[nodiscard]] std::optional<std::string> indexed_key(std::string_view name);
[[nodiscard]] std::string child_path(std::string_view folder, std::string_view name);

/// Data of a node.
struct node_data
{
    /// 0: until released.
    std::chrono::milliseconds ttl{};
    std::size_t max_holders = 0;
    remote::stored_owner who{};
};
[[nodiscard]] std::string to_text(const claim& of, std::chrono::milliseconds ttl);
/// Returns nullopt if the data was not written by this library.
[[nodiscard]] std::optional<node_data> parse_node_data(std::string_view text);

} // namespace colock::zookeeper::detail
