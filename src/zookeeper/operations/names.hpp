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

/// The folder of all folders of keys, or of some of them.
[[nodiscard]] std::string bucket_folder(const settings& config, std::string_view key);
/// The folder of a key, in which its holders and those who wait stand.
[[nodiscard]] std::string key_folder(const settings& config, std::string_view key);
[[nodiscard]] role role_of(const claim& of) noexcept;
/// What the names of a claim's nodes begin with.
[[nodiscard]] std::string claim_prefix(const settings& config, const claim& of);
/// The folder of a group's index, and the one that all of those are in.
[[nodiscard]] std::string groups_folder(const settings& config);
[[nodiscard]] std::string group_folder(const settings& config, std::string_view id);
/// Whether a claim has an index node, and where. The data of other layouts' nodes names no group.
[[nodiscard]] bool is_grouped(const settings& config, const claim& of) noexcept;
[[nodiscard]] std::string index_path(const settings& config, const claim& of);
/// The key in such a node's name; nothing for what is not ours.
[[nodiscard]] std::optional<std::string> indexed_key(std::string_view name);
[[nodiscard]] std::string child_path(std::string_view folder, std::string_view name);

/// What a node of ours holds.
struct node_data
{
    /// 0: until released.
    std::chrono::milliseconds ttl{};
    std::size_t max_holders = 0;
    remote::stored_owner who{};
};
[[nodiscard]] std::string to_text(const claim& of, std::chrono::milliseconds ttl);
/// Nothing for what is not ours.
[[nodiscard]] std::optional<node_data> parse_node_data(std::string_view text);

} // namespace colock::zookeeper::detail
