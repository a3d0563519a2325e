// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/layout/key_encoding.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>

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

} // namespace colock::inline v0::zookeeper::detail
