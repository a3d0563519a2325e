// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/driver/greeting.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace colock::zookeeper::detail {

namespace {

/// Its fields: its length without this one, the version, the timeout, the session, the length of the password, the
/// password, and, of servers since 3.4, whether it only reads.
constexpr std::size_t version_at = 4;
constexpr std::size_t timeout_at = 8;
constexpr std::size_t session_at = 12;
constexpr std::size_t password_size_at = 20;
constexpr std::size_t read_only_at = 40;

constexpr std::size_t number_size = 4;
constexpr int password_size = 16;

/// As far as it has come.
bool may_be(std::span<const std::byte> came, std::size_t at, int small) noexcept
{
    for (std::size_t i = 0; i < number_size && at + i < came.size(); ++i) {
        if (std::to_integer<int>(came[at + i]) != (i + 1 == number_size ? small : 0))
            return false;
    }
    return true;
}

bool is_zero(std::span<const std::byte> bytes) noexcept
{
    return std::ranges::all_of(bytes, [](std::byte each) { return each == std::byte{}; });
}

} // namespace

std::size_t size_of_greeting(std::span<const std::byte> came) noexcept
{
    const bool is_long = came.size() >= number_size && may_be(came, 0, longest_greeting - number_size);
    return is_long ? longest_greeting : shortest_greeting;
}

greeting judge_greeting(std::span<const std::byte> came, bool has_session) noexcept
{
    const bool has_length =
        may_be(came, 0, shortest_greeting - number_size) || may_be(came, 0, longest_greeting - number_size);
    if (!has_length || !may_be(came, version_at, 0) || !may_be(came, password_size_at, password_size))
        return greeting::strange;
    if (came.size() < size_of_greeting(came))
        return greeting::part;
    const auto timeout = came.subspan(timeout_at, session_at - timeout_at);
    const auto session = came.subspan(session_at, password_size_at - session_at);
    const bool is_negative = std::to_integer<int>(timeout.front()) >= 0x80;
    const bool lives = !is_negative && !is_zero(timeout) && !is_zero(session);
    const bool is_over = has_session && is_zero(timeout) && is_zero(session);
    // One that only reads takes nobody who does not say that this will do.
    const bool only_reads = came.size() > read_only_at && came[read_only_at] != std::byte{};
    return (lives || is_over) && !only_reads ? greeting::sound : greeting::strange;
}

void refuse_greeting(socket_waiter& socket) noexcept
{
    constexpr int most_reads = 64;
    socket.cut();
    std::array<std::byte, 4096> unread;
    for (int i = 0; i < most_reads; ++i) {
        if (const auto got = socket.take(unread); !got || got->empty())
            break;
    }
}

} // namespace colock::zookeeper::detail
