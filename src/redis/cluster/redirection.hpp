// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/slot.hpp"
#include "redis/url.hpp"

#include <optional>
#include <string_view>

namespace colock::inline v0::redis::detail {

/// An error reply by which a node of a cluster refers the client to another node.
struct redirection
{
    /// The other node has only taken over some keys of the slot. Only this request has to be sent there, behind ASKING.
    /// Otherwise the slot belongs to the other node.
    bool asks = false;
    slot_number slot = 0;
    /// The host is empty if it is that of the node that has replied.
    endpoint node{};

    friend bool operator==(const redirection&, const redirection&) = default;
};

/// Reads `MOVED slot host:port` or `ASK slot host:port`. Returns nothing for any other error.
[[nodiscard]] std::optional<redirection> parse_redirection(std::string_view error);

} // namespace colock::inline v0::redis::detail
