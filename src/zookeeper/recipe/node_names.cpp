// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/recipe/node_names.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace colock::inline v0::zookeeper::detail {

namespace {

/// The hash FNV-1a of 64 bits. Boost has it only since 1.88, in Boost.Hash2.
constexpr std::uint64_t fnv1a(std::string_view text)
{
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

constexpr std::string_view hex_digits = "0123456789ABCDEF";
/// The alphabet of base64url, which consists of the characters that are not percent-encoded.
constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr char base64_mark = '~';

/// Whether a byte is not percent-encoded.
constexpr auto unreserved_bytes = [] {
    std::array<bool, 256> found{};
    for (const char c : alphabet)
        found[static_cast<unsigned char>(c)] = true;
    return found;
}();

bool is_unreserved(char c)
{
    return unreserved_bytes[static_cast<unsigned char>(c)];
}

std::string to_percent(std::string_view key)
{
    std::string text;
    text.reserve(key.size() + 2 * static_cast<std::size_t>(std::ranges::count_if(key, std::not_fn(is_unreserved))));
    for (const char c : key) {
        if (is_unreserved(c)) {
            text += c;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            ((text += '%') += hex_digits[byte >> 4]) += hex_digits[byte & 15];
        }
    }
    return text;
}

std::string to_base64(std::string_view key)
{
    std::string text(1, base64_mark);
    unsigned bits = 0;
    int left = 0;
    for (const char c : key) {
        bits = bits << 8 | static_cast<unsigned char>(c);
        for (left += 8; left >= 6; left -= 6)
            text += alphabet[bits >> (left - 6) & 63];
    }
    if (left > 0)
        text += alphabet[bits << (6 - left) & 63];
    return text;
}

std::optional<std::string> from_percent(std::string_view text)
{
    std::string key;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            key += text[i];
            continue;
        }
        unsigned char byte = 0;
        const auto* const first = text.data() + std::min(i + 1, text.size());
        const auto* const last = text.data() + std::min(i + 3, text.size());
        if (std::from_chars(first, last, byte, 16).ptr != first + 2)
            return std::nullopt;
        key += static_cast<char>(byte);
        i += 2;
    }
    return key;
}

std::optional<std::string> from_base64(std::string_view text)
{
    std::string key;
    unsigned bits = 0;
    int left = 0;
    for (const char c : text) {
        const auto value = alphabet.find(c);
        if (value == std::string_view::npos)
            return std::nullopt;
        bits = bits << 6 | static_cast<unsigned>(value);
        left += 6;
        if (left >= 8) {
            left -= 8;
            key += static_cast<char>(bits >> left & 255);
        }
    }
    return key;
}

/// Text before the sequence number, and the role that it stands for.
struct marker
{
    std::string_view text;
    role means;
};

constexpr std::array own_markers{marker{"-x-", role::exclusive}, marker{"-s-", role::shared}};
constexpr std::array mutex_markers{marker{"-lock-", role::exclusive}, marker{"__lock__", role::exclusive}};
constexpr std::array read_write_markers{marker{"__WRIT__", role::exclusive}, marker{"__READ__", role::shared}};

std::span<const marker> markers_of(layout how)
{
    switch (how) {
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

std::string encode_key(std::string_view key)
{
    auto percent = to_percent(key);
    if (percent.size() <= (key.size() * 4 + 2) / 3 + 1)
        return percent;
    return to_base64(key);
}

std::optional<std::string> decode_key(std::string_view component)
{
    auto key = component.starts_with(base64_mark) ? from_base64(component.substr(1)) : from_percent(component);
    // Each key has only one valid encoding.
    if (!key || key->empty() || encode_key(*key) != component)
        return std::nullopt;
    return key;
}

std::string bucket_of(std::string_view key)
{
    const auto low = fnv1a(key) & 255;
    constexpr std::string_view digits = "0123456789abcdef";
    return {digits[low >> 4], digits[low & 15]};
}

std::string node_prefix(layout how, std::string_view id, role wants)
{
    std::string prefix;
    if (how == layout::standard) {
        constexpr std::string_view exclusive = "-x-";
        prefix.reserve(id.size() + exclusive.size());
        return prefix.append(id).append(wants == role::exclusive ? exclusive : "-s-");
    }
    const std::string_view ending = how == layout::curator_mutex ? "-lock-"
                                    : wants == role::exclusive   ? "-__WRIT__"
                                                                 : "-__READ__";
    return prefix.append("_c_").append(with_dashes(id)).append(ending);
}

std::optional<std::int32_t> parse_number(std::string_view digits)
{
    std::int32_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return error == std::errc() && end == digits.data() + digits.size() ? std::optional(number) : std::nullopt;
}

std::optional<place> parse_node(layout how, std::string_view name)
{
    for (const auto& each : markers_of(how)) {
        // The last occurrence counts, because Curator only reads the text after it.
        const auto at = name.rfind(each.text);
        if (at == std::string_view::npos || (how == layout::standard && !is_id(name.substr(0, at))))
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
