// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/socket_watch.hpp"

namespace colock::zookeeper::detail {

/// Whether what has come for the driver, which waits for the answer to its handshake, is none. The driver believes
/// whatever it is answered, and ends the process where that makes no sense.
[[nodiscard]] bool is_strange_greeting(socket_watch& socket) noexcept;

/// Ends the connection. What has arrived would still be read, and believed: it is thrown away.
void refuse_greeting(socket_watch& socket) noexcept;

} // namespace colock::zookeeper::detail
