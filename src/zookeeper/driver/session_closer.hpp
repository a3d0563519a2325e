// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/socket_waiter.hpp"
#include "zookeeper/driver/zk_client.hpp"

#include <array>
#include <cstddef>

namespace colock::inline v0::zookeeper::detail {

/// Closes a session at the server without blocking: sends the queued requests, sends the request that closes the
/// session, and reads the reply. The driver's own close function does the same, but blocks.
///
/// Thread safety: none.
class session_closer
{
public:
    enum class progress : unsigned char
    {
        /// Data have to be written. The caller must call `flush` when the socket is writable.
        wants_write,
        /// Data have to be read. The caller must call `read_rest` when the socket is readable.
        wants_read,
        /// The server has closed the session.
        confirmed,
        /// The connection has ended without the server's confirmation.
        failed,
    };

    [[nodiscard]] progress flush(zk_client& driver, socket_waiter& socket);
    [[nodiscard]] progress read_rest(socket_waiter& socket);

private:
    /// The last bytes that the server has sent: the reply to the closing request, once it has arrived.
    std::array<std::byte, 20> tail_{};
};

} // namespace colock::inline v0::zookeeper::detail
