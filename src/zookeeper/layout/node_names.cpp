// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/layout/node_names.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>

namespace colock::inline v0::zookeeper::detail {

namespace {

/// Text before the sequence number, and the role that it stands for.
struct marker
{
    std::string_view text;
    role means;
};

constexpr std::array own_markers{marker{"-x-", role::exclusive}, marker{"-s-", role::shared}};
constexpr std::array mutex_markers{marker{"-lock-", role::exclusive}, marker{"__lock__", role::exclusive}};
constexpr std::array read_write_markers{marker{"__WRIT__", role::exclusive}, marker{"__READ__", role::shared}};

std::span<const marker> markers_of(layout layout)
{
    switch (layout) {
    case layout::standard:
        return own_markers;
    case layout::curator_mutex:
        return mutex_markers;
    case layout::curator_read_write:
        return read_write_markers;
    }
    return {};
}

constexpr std::size_t id_size = 32;

std::string with_dashes(std::string_view id)
{
    std::string text;
    for (const std::size_t size : {8u, 4u, 4u, 4u, 12u}) {
        (text += text.empty() ? "" : "-") += id.substr(0, size);
        id.remove_prefix(size);
    }
    return text;
}

bool is_id(std::string_view text)
{
    return text.size() == id_size &&
           std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

} // namespace

std::string node_prefix(layout layout, std::string_view id, role wants)
{
    std::string prefix;
    if (layout == layout::standard) {
        constexpr std::string_view exclusive = "-x-";
        prefix.reserve(id.size() + exclusive.size());
        return prefix.append(id).append(wants == role::exclusive ? exclusive : "-s-");
    }
    const std::string_view suffix = layout == layout::curator_mutex ? "-lock-"
                                    : wants == role::exclusive      ? "-__WRIT__"
                                                                    : "-__READ__";
    return prefix.append("_c_").append(with_dashes(id)).append(suffix);
}

std::optional<std::int32_t> parse_number(std::string_view digits)
{
    std::int32_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return error == std::errc() && end == digits.data() + digits.size() ? std::optional(number) : std::nullopt;
}

std::optional<place> parse_node(layout layout, std::string_view name)
{
    for (const auto& each : markers_of(layout)) {
        // The last occurrence counts, because Curator only reads the text after it.
        const auto at = name.rfind(each.text);
        if (at == std::string_view::npos || (layout == layout::standard && !is_id(name.substr(0, at))))
            continue;
        if (const auto number = parse_number(name.substr(at + each.text.size())))
            return place{each.means, *number};
    }
    return std::nullopt;
}

bool is_before(place one, place other) noexcept
{
    const auto distance =
        static_cast<std::int32_t>(static_cast<std::uint32_t>(one.number) - static_cast<std::uint32_t>(other.number));
    if (distance != 0)
        return distance < 0;
    return one.wants == role::exclusive && other.wants == role::shared;
}

} // namespace colock::inline v0::zookeeper::detail
