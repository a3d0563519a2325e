// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include <string>
#include <vector>

namespace colock {
namespace asio = boost::asio;
}

namespace colock::zookeeper::detail {

/// The C client's list of servers. After a failure the client goes two steps on: the list has an odd number of
/// entries, one of them twice if need be, so that none is left out for ever.
[[nodiscard]] std::string server_list(const std::vector<asio::ip::tcp::endpoint>& servers);

} // namespace colock::zookeeper::detail
