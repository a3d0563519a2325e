// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/driver/greeting.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace colock::inline v0::zookeeper::detail {

namespace {

/// Fields of the reply to a handshake: the length of the rest, the protocol version, the session timeout, the session
/// id, the length of the password, the password, and a flag for read-only mode, which servers send since version 3.4.
constexpr std::size_t version_at = 4;
constexpr std::size_t timeout_at = 8;
constexpr std::size_t session_at = 12;
constexpr std::size_t password_size_at = 20;
constexpr std::size_t read_only_at = 40;

constexpr std::size_t number_size = 4;
constexpr int password_size = 16;

/// Whether the bytes received so far can be the number `small`, which is stored at the offset `at` in four bytes.
bool can_be_number(std::span<const std::byte> received, std::size_t at, int small) noexcept
{
    for (std::size_t i = 0; i < number_size && at + i < received.size(); ++i) {
        if (std::to_integer<int>(received[at + i]) != (i + 1 == number_size ? small : 0))
            return false;
    }
    return true;
}

bool is_zero(std::span<const std::byte> bytes) noexcept
{
    return std::ranges::all_of(bytes, [](std::byte each) { return each == std::byte{}; });
}

} // namespace

std::size_t greeting_size(std::span<const std::byte> received) noexcept
{
    const bool is_long = received.size() >= number_size && can_be_number(received, 0, max_greeting_size - number_size);
    return is_long ? max_greeting_size : min_greeting_size;
}

greeting check_greeting(std::span<const std::byte> received, bool has_session) noexcept
{
    const bool has_length = can_be_number(received, 0, min_greeting_size - number_size) ||
                            can_be_number(received, 0, max_greeting_size - number_size);
    if (!has_length || !can_be_number(received, version_at, 0) ||
        !can_be_number(received, password_size_at, password_size))
        return greeting::invalid;
    if (received.size() < greeting_size(received))
        return greeting::incomplete;
    const auto timeout = received.subspan(timeout_at, session_at - timeout_at);
    const auto session = received.subspan(session_at, password_size_at - session_at);
    const bool is_negative = std::to_integer<int>(timeout.front()) >= 0x80;
    const bool is_accepted = !is_negative && !is_zero(timeout) && !is_zero(session);
    const bool is_expired = has_session && is_zero(timeout) && is_zero(session);
    // A server in read-only mode accepts only clients that allow this mode, and this client does not.
    const bool is_read_only = received.size() > read_only_at && received[read_only_at] != std::byte{};
    return (is_accepted || is_expired) && !is_read_only ? greeting::valid : greeting::invalid;
}

void reject_greeting(socket_waiter& socket) noexcept
{
    constexpr int max_reads = 64;
    socket.shut_down();
    std::array<std::byte, 4096> unread;
    for (int i = 0; i < max_reads; ++i) {
        if (const auto data = socket.take(unread); !data || data->empty())
            break;
    }
}

} // namespace colock::inline v0::zookeeper::detail
