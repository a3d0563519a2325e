// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "net/url.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace colock::zookeeper::detail {

using remote::endpoint;

/// Where an ensemble is, and who we are to it.
struct location
{
    std::vector<endpoint> servers{};
    std::string user{};
    std::string password{};
    /// The node that all of ours are under; begins with a '/', and does not end with one.
    std::string chroot = "/colock";

    friend bool operator==(const location&, const location&) = default;
};

/// `zookeeper://[user:password@]host[:port][,host[:port]]...[/chroot]`, port 2181.
/// \throws validation_error `invalid_options`
[[nodiscard]] location parse_url(std::string_view url);

/// Whether a server takes it for a node's path.
[[nodiscard]] bool is_path(std::string_view path);

} // namespace colock::zookeeper::detail
