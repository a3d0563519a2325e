// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/operations/names.hpp"

#include <charconv>

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

role role_of(const claim& of) noexcept
{
    return of.mode() == lock_mode::shared ? role::shared : role::exclusive;
}

std::string claim_prefix(const settings& config, const claim& of)
{
    return node_prefix(config.layout, of.token().hex(), role_of(of));
}

std::string groups_folder(const settings& config)
{
    return child_path(config.chroot(), ".g");
}

std::string group_folder(const settings& config, std::string_view id)
{
    return child_path(groups_folder(config), encode_key(id));
}

bool is_grouped(const settings& config, const claim& of) noexcept
{
    return config.standard() && !of.owner().group.empty();
}

std::string index_path(const settings& config, const claim& of)
{
    return child_path(group_folder(config, of.owner().group), of.token().hex() + '~' + encode_key(of.key()));
}

std::optional<std::string> indexed_key(std::string_view name)
{
    constexpr auto before = 2 * token::size;
    return name.size() > before && name[before] == '~' ? decode_key(name.substr(before + 1)) : std::nullopt;
}

std::string to_text(const claim& of, std::chrono::milliseconds ttl)
{
    auto text = std::to_string(ttl.count()) + ' ' + std::to_string(of.max_holders()) + '\n';
    remote::append_stored_owner(text, of.owner(), remote::wall_clock_ms());
    return text;
}

std::optional<node_data> parse_node_data(std::string_view text)
{
    node_data parsed;
    std::chrono::milliseconds::rep ttl = 0;
    const auto* const end = text.data() + text.size();
    auto [at, error] = std::from_chars(text.data(), end, ttl);
    if (error != std::errc() || at == end || *at != ' ')
        return std::nullopt;
    const auto limit = std::from_chars(at + 1, end, parsed.max_holders);
    if (limit.ec != std::errc() || limit.ptr == end || *limit.ptr != '\n')
        return std::nullopt;
    parsed.ttl = std::chrono::milliseconds(ttl);
    auto who = remote::parse_stored_owner(text.substr(static_cast<std::size_t>(limit.ptr + 1 - text.data())));
    if (!who)
        return std::nullopt;
    parsed.who = std::move(*who);
    return parsed;
}

} // namespace colock::inline v0::zookeeper::detail
