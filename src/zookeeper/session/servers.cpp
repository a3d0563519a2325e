// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/session/servers.hpp"

#include <cstddef>

namespace colock::inline v0::zookeeper::detail {

std::string server_list(const std::vector<asio::ip::tcp::endpoint>& servers)
{
    std::string list;
    const auto entries = servers.empty() ? 0 : servers.size() | 1;
    for (std::size_t i = 0; i < entries; ++i) {
        const auto& each = servers[i % servers.size()];
        // IPv6 addresses have no brackets here, because the C client splits at the last colon.
        (list += list.empty() ? "" : ",") += each.address().to_string() + ':' + std::to_string(each.port());
    }
    return list;
}

} // namespace colock::inline v0::zookeeper::detail
