// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "redis/cluster/redirection.hpp"

#include "redis/failures.hpp"
#include "util/cursor.hpp"

#include <string>

namespace colock::inline v0::redis::detail {

std::optional<redirection> parse_redirection(std::string_view error)
{
    error = unwrapped(error);
    redirection result;
    result.asks = error.starts_with("ASK ");
    if (!result.asks && !error.starts_with("MOVED "))
        return std::nullopt;
    error.remove_prefix(error.find(' ') + 1);
    const auto space = error.find(' ');
    // An IPv6 address contains colons and has no brackets here.
    const auto colon = error.rfind(':');
    if (space == error.npos || colon == error.npos || colon < space)
        return std::nullopt;
    const auto slot = colock::detail::read_number(error.substr(0, space));
    const auto port = error.substr(colon + 1);
    const auto port_number = colock::detail::read_number(port);
    if (!slot || *slot >= slot_count || !port_number || *port_number == 0 || *port_number > 65535)
        return std::nullopt;
    result.slot = static_cast<slot_number>(*slot);
    result.node = {std::string(error.substr(space + 1, colon - space - 1)), std::string(port)};
    // The server does not know its own host.
    if (result.node.host == "?")
        result.node.host.clear();
    return result;
}

} // namespace colock::inline v0::redis::detail
