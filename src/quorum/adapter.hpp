// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/adapter.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace colock::quorum {

struct settings
{
    std::string name;
    /// How long a node may take to answer.
    std::chrono::milliseconds patience;
    /// How often a waiter looks again.
    std::chrono::milliseconds poll_interval;
};

/// Exclusive locks over independent nodes, an odd number of at least three: held by whoever a majority has granted them
/// to. All nodes are asked at the same time, and the first answers that decide are enough; what a minority has granted
/// is taken back in the background. Knows nothing of the nodes but that they are adapters.
///
/// Thread safety: all members of the result may be called from any thread.
[[nodiscard]] std::shared_ptr<adapter> make_adapter(
    asio::any_io_executor executor, const std::vector<std::shared_ptr<adapter>>& nodes, settings chosen);

} // namespace colock::quorum
