// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace colock::inline v0::redis::detail {

// The slots of Redis Cluster: https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/

/// Number of a slot, from 0.
using slot_number = std::uint16_t;
inline constexpr slot_number slot_count = 16384;

/// Returns the hash tag of a key: the text between its first `{` and the next `}`. Empty if there is none.
[[nodiscard]] std::string_view hash_tag(std::string_view key) noexcept;
/// Returns the slot of a key: that of its hash tag, or of the whole key if it has none.
[[nodiscard]] slot_number slot_of(std::string_view key) noexcept;
/// Returns the lowest number that, in decimal digits, is a hash tag of that slot.
[[nodiscard]] std::string tag_of(slot_number slot);

} // namespace colock::inline v0::redis::detail
