// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "received_bytes.hpp"

#include <algorithm>

#include <arpa/inet.h>
// In place of <netinet/tcp.h>, whose `tcp_info` lacks `tcpi_bytes_received`.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

namespace bench {

std::uint64_t bytes_received_from(std::uint16_t port)
{
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const auto descriptors = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 4096));
    std::uint64_t all = 0;
    for (int each = 0; each < descriptors; ++each) {
        sockaddr_in peer{};
        socklen_t size = sizeof peer;
        if (::getpeername(each, reinterpret_cast<sockaddr*>(&peer), &size) != 0 || peer.sin_family != AF_INET ||
            ntohs(peer.sin_port) != port)
            continue;
        tcp_info info{};
        size = sizeof info;
        if (::getsockopt(each, IPPROTO_TCP, TCP_INFO, &info, &size) == 0)
            all += info.tcpi_bytes_received;
    }
    return all;
}

} // namespace bench
