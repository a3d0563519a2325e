// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/operations/paths.hpp"

#include "zookeeper/layout/key_encoding.hpp"
#include "zookeeper/layout/node_names.hpp"

namespace colock::inline v0::zookeeper::detail {

std::string child_path(std::string_view folder, std::string_view name)
{
    return std::string(folder).append("/").append(name);
}

std::string bucket_folder(const settings& config, std::string_view key)
{
    return config.standard() ? child_path(config.chroot(), bucket_of(key)) : config.chroot();
}

std::string key_folder(const settings& config, std::string_view key)
{
    return child_path(bucket_folder(config, key), encode_key(key));
}

std::string claim_prefix(const settings& config, const claim& claim)
{
    const auto wants = claim.mode() == lock_mode::shared ? role::shared : role::exclusive;
    return node_prefix(config.layout, claim.token().hex(), wants);
}

std::string groups_folder(const settings& config)
{
    return child_path(config.chroot(), ".g");
}

std::string group_folder(const settings& config, std::string_view id)
{
    return child_path(groups_folder(config), encode_key(id));
}

bool is_grouped(const settings& config, const claim& claim) noexcept
{
    return config.standard() && !claim.owner().group.empty();
}

std::string index_path(const settings& config, const claim& claim)
{
    return child_path(group_folder(config, claim.owner().group), claim.token().hex() + '~' + encode_key(claim.key()));
}

std::optional<std::string> indexed_key(std::string_view name)
{
    constexpr auto before = 2 * token::size;
    return name.size() > before && name[before] == '~' ? decode_key(name.substr(before + 1)) : std::nullopt;
}

} // namespace colock::inline v0::zookeeper::detail
