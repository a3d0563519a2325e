// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace colock::inline v0::quorum {

struct settings
{
    std::string name;
    /// Time that a node has to answer.
    std::chrono::milliseconds operation_timeout;
    /// Interval at which a waiter tries again.
    std::chrono::milliseconds poll_interval;
};

/// Creates an adapter for exclusive locks over independent nodes. The number of nodes is odd and at least three. A lock
/// is held by the claim that a majority of the nodes has granted.
///
/// All nodes are asked at the same time, and the operation completes when the answers decide it. Grants of a minority
/// are released in the background. The nodes may be adapters of any kind.
///
/// Thread safety: all members of the result may be called from any thread.
[[nodiscard]] std::shared_ptr<adapter> make_adapter(
    asio::any_io_executor executor, const std::vector<std::shared_ptr<adapter>>& nodes, settings settings);

} // namespace colock::inline v0::quorum
