// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/socket_waiter.hpp"

#include <cstddef>
#include <span>

namespace colock::inline v0::zookeeper::detail {

/// The server's reply to the driver's handshake. The driver does not validate the reply: a malformed one makes the
/// driver end the process, wait for more data, or never try another server. So the driver may read only replies that
/// are complete and valid.
enum class greeting : unsigned char
{
    /// Incomplete, but valid so far.
    incomplete,
    valid,
    /// The data is not the reply of a ZooKeeper server, or is one that this client cannot use.
    invalid,
};

/// The smallest and the largest size of a greeting in bytes.
inline constexpr std::size_t min_greeting_size = 40;
inline constexpr std::size_t max_greeting_size = 41;

/// \param received the greeting from its first byte on, at most `max_greeting_size` bytes
/// \param has_session whether the driver asks to resume a session, which may have expired
[[nodiscard]] greeting check_greeting(std::span<const std::byte> received, bool has_session) noexcept;
/// Returns the complete size of the greeting that begins with `received`.
[[nodiscard]] std::size_t greeting_size(std::span<const std::byte> received) noexcept;

/// Shuts the connection down, and discards the data that has arrived, which the driver would still read.
void reject_greeting(socket_waiter& socket) noexcept;

} // namespace colock::inline v0::zookeeper::detail
