// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "net/url.hpp"

#include <colock/redis/adapter.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::redis::detail {

using remote::endpoint;

/// Address of a server, and the credentials.
struct location
{
    bool tls = false;
    /// The hosts are nodes of a cluster, on which the other nodes are found.
    bool cluster = false;
    /// The server, or the Sentinels if `master` is set, or some nodes of the cluster.
    std::vector<endpoint> hosts{};
    /// Path of a Unix socket. If set, `tls` is false and `hosts` is empty.
    std::string socket_path{};
    std::string master{};
    std::string user{};
    std::string password{};
    int database = 0;

    friend bool operator==(const location&, const location&) = default;
};

/// Returns the options with those of the query of the URL, which the returned URL does not contain any more.
/// \throws validation_error `invalid_options`
[[nodiscard]] options take_url_options(options settings);

/// Parses a URL without options.
/// \throws validation_error `invalid_options`
[[nodiscard]] location parse_url(std::string_view url);

[[noreturn]] void refuse_options(std::string reason);

} // namespace colock::inline v0::redis::detail
