// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include <string>
#include <vector>

namespace colock::inline v0 {
namespace asio = boost::asio;
}

namespace colock::inline v0::zookeeper::detail {

/// Returns the list of servers for the C client. After a failure the C client advances by two entries. So the list has
/// an odd number of entries, one of them twice if needed, so that no server is left out forever.
[[nodiscard]] std::string server_list(const std::vector<asio::ip::tcp::endpoint>& servers);

} // namespace colock::inline v0::zookeeper::detail
