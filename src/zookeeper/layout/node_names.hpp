// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/zookeeper/adapter.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace colock::inline v0::zookeeper::detail {

using zookeeper::layout;

enum class role : unsigned char
{
    exclusive,
    shared,
};

/// Role and sequence number of a node in a lock queue.
struct place
{
    role wants;
    /// The server's sequence number. In the order of numbers, the lowest one follows the highest one.
    std::int32_t number;

    friend bool operator==(const place&, const place&) = default;
};

/// Returns false for numbers that several nodes may have. After its highest number a server counts no further, and
/// gives this number, or the lowest one, to all later nodes.
[[nodiscard]] constexpr bool is_sound(std::int32_t number) noexcept
{
    return number >= 0 && number < std::numeric_limits<std::int32_t>::max();
}

/// Returns the name of a node without the number that the server appends.
/// \param id 32 hexadecimal digits
[[nodiscard]] std::string node_prefix(layout layout, std::string_view id, role wants);

/// Parses the number after the prefix; returns nullopt if the text is not a number.
[[nodiscard]] std::optional<std::int32_t> parse_number(std::string_view digits);

/// Returns nullopt if the name does not belong to the layout.
[[nodiscard]] std::optional<place> parse_node(layout layout, std::string_view name);

/// Returns whether `one` is ahead of `other`. With equal numbers a write is ahead of a read, because Curator lets a
/// writer read under the number of its write.
[[nodiscard]] bool is_before(place one, place other) noexcept;

} // namespace colock::inline v0::zookeeper::detail
