// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "zookeeper/driver/socket_waiter.hpp"
#include "zookeeper/driver/zk_client.hpp"

#include <array>
#include <cstddef>

namespace colock::zookeeper::detail {

/// The end of a session, said to the server and heard from it: what is queued is sent; then the request that ends it;
/// then its answer is read. The driver would do that, too, and block meanwhile.
///
/// Thread safety: none.
class closing
{
public:
    enum class progress : unsigned char
    {
        /// There is more to be written, or to be read: go on once that can be done.
        writes,
        reads,
        proven,
        /// It has ended in another way.
        failed,
    };

    [[nodiscard]] progress flush(zk_client& driver, socket_waiter& socket);
    [[nodiscard]] progress read_rest(socket_waiter& socket);

private:
    /// The last bytes that the server has sent.
    std::array<std::byte, 20> tail_{};
};

} // namespace colock::zookeeper::detail
