// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/adapter/stored_owner.hpp"

#include <colock/spi/claim.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace colock::inline v0::zookeeper::detail {

/// Data of a node.
struct node_data
{
    /// Time to live; 0: the lock is held until it is released.
    std::chrono::milliseconds ttl{};
    std::size_t max_holders = 0;
    remote::stored_owner owner{};
};
/// Returns the data of the claim's node as text.
[[nodiscard]] std::string format_node_data(const claim& claim, std::chrono::milliseconds ttl);
/// Returns nullopt if the data was not written by this library.
[[nodiscard]] std::optional<node_data> parse_node_data(std::string_view text);

} // namespace colock::inline v0::zookeeper::detail
