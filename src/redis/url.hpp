// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "net/url.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::redis::detail {

using remote::endpoint;

/// Address of a server, and the credentials.
struct location
{
    bool tls = false;
    /// The server, or the Sentinels if `master` is set.
    std::vector<endpoint> hosts{};
    /// Path of a Unix socket. If set, `tls` is false and `hosts` is empty.
    std::string socket_path{};
    std::string master{};
    std::string user{};
    std::string password{};
    int database = 0;

    friend bool operator==(const location&, const location&) = default;
};

/// \throws validation_error `invalid_options`
[[nodiscard]] location parse_url(std::string_view url);

[[noreturn]] void refuse_options(std::string why);

} // namespace colock::inline v0::redis::detail
