// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/socket_waiter.hpp"

#include <cstddef>
#include <span>

namespace colock::zookeeper::detail {

/// What the server answers to the driver's handshake. The driver believes whatever that is, and ends the process, waits
/// for more of it, or never finds another server where it makes no sense: it is to be given none that is not here as a
/// whole, and sound.
enum class greeting : unsigned char
{
    /// So far it may be one.
    part,
    sound,
    /// What a ZooKeeper server would never say.
    strange,
};

/// The least that one has.
inline constexpr std::size_t shortest_greeting = 40;
inline constexpr std::size_t longest_greeting = 41;

/// \param came from the first byte on, at most as much as the longest has
/// \param has_session an older session is asked for, which may be over
[[nodiscard]] greeting judge_greeting(std::span<const std::byte> came, bool has_session) noexcept;
/// How many bytes it has, of which `came` is a part.
[[nodiscard]] std::size_t size_of_greeting(std::span<const std::byte> came) noexcept;

/// Ends the connection. What has arrived would still be read, and believed: it is thrown away.
void refuse_greeting(socket_waiter& socket) noexcept;

} // namespace colock::zookeeper::detail
