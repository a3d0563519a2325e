// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/zookeeper/adapter.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace colock::zookeeper::detail {

/// A key as one component of a path: percent-encoded, or, where that is longer, '~' and base64url. All but letters,
/// digits, '_' and '-' is encoded, so that nothing of ours that begins with a '.' is taken for a key.
[[nodiscard]] std::string encode_key(std::string_view key);
/// Nothing for what is not the name of any key.
[[nodiscard]] std::optional<std::string> decode_key(std::string_view component);

/// Two hexadecimal digits, the same in every build: a folder for a part of the keys.
[[nodiscard]] std::string bucket_of(std::string_view key);

using zookeeper::layout;

enum class role : unsigned char
{
    exclusive,
    shared,
};

/// One that stands in line for a key.
struct place
{
    role wants;
    /// The server's, which goes on at its lowest number after its highest.
    std::int32_t number;

    friend bool operator==(const place&, const place&) = default;
};

/// False for numbers that several may have: a server has none after its highest, and gives that, or its lowest, to all
/// that come later.
[[nodiscard]] constexpr bool is_sound(std::int32_t number) noexcept
{
    return number >= 0 && number < std::numeric_limits<std::int32_t>::max();
}

/// The name of a node without its number, which the server appends.
/// \param id 32 hexadecimal digits
[[nodiscard]] std::string node_prefix(layout how, std::string_view id, role wants);

/// What stands behind that; nothing if it is no number.
[[nodiscard]] std::optional<std::int32_t> parse_number(std::string_view digits);

/// Nothing for a name that is none of that layout's.
[[nodiscard]] std::optional<place> parse_node(layout how, std::string_view name);

/// Curator's writers may read too: under the number of their own write, which then comes first.
[[nodiscard]] bool is_before(place one, place other) noexcept;

} // namespace colock::zookeeper::detail
