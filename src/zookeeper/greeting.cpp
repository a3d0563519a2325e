// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/greeting.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace colock::zookeeper::detail {

bool is_strange_greeting(socket_watch& socket) noexcept
{
    // Length, version, timeout, session, and the length of a password.
    std::array<std::byte, 24> room{};
    const auto greeting = socket.peek(room);
    constexpr std::array<std::byte, 4> none{};
    const auto is_small = [&](std::size_t at, int most) {
        return std::equal(none.begin(), none.end() - 1, greeting.begin() + static_cast<std::ptrdiff_t>(at)) &&
               std::to_integer<int>(greeting[at + 3]) <= most;
    };
    return greeting.size() == room.size() && !(is_small(0, 37) && is_small(4, 0) && is_small(20, 16));
}

void refuse_greeting(socket_watch& socket) noexcept
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
