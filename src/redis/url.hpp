// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "net/url.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace colock::redis::detail {

using remote::endpoint;

/// Where a server is, and who we are to it.
struct location
{
    bool tls = false;
    /// One server; or Sentinels, if `master` is set.
    std::vector<endpoint> hosts{};
    /// If set, all the above is empty.
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

} // namespace colock::redis::detail
