// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "net/url.hpp"

#include <colock/zookeeper/adapter.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::zookeeper::detail {

using remote::endpoint;

/// The servers of an ensemble, the user to authenticate as, and the root of all nodes.
struct location
{
    std::vector<endpoint> servers{};
    std::string user{};
    std::string password{};
    /// Path of the node that contains all nodes of this library. Begins with '/', and does not end with '/'.
    std::string chroot = "/colock";

    friend bool operator==(const location&, const location&) = default;
};

/// Returns the options with those of the query of the URL, which the returned URL does not contain any more.
/// \throws validation_error `invalid_options`
[[nodiscard]] options take_url_options(options options);

/// Parses `zookeeper://[user:password@]host[:port][,host[:port]]...[/chroot]`. The default port is 2181.
/// \throws validation_error `invalid_options`
[[nodiscard]] location parse_url(std::string_view url);

/// Whether a server accepts `path` as the path of a node.
[[nodiscard]] bool is_path(std::string_view path);

} // namespace colock::inline v0::zookeeper::detail
