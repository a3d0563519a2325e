// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "net/url.hpp"

#include <colock/tls.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace colock::mongo::detail {

using remote::endpoint;

/// The mechanism in which the certificate of the client replaces the password.
inline constexpr std::string_view x509_mechanism = "MONGODB-X509";

/// Where servers are, and who we are to them.
struct location
{
    std::vector<endpoint> hosts{};
    std::string replica_set{};
    bool direct = false;
    bool tls = false;
    std::string ca_file{};
    /// Certificate and key in one.
    std::string certificate_key_file{};
    std::string user{};
    std::string password{};
    /// Empty: not named.
    std::string auth_source{};
    std::string auth_mechanism{};
    /// That of the path; empty: none.
    std::string database{};

    friend bool operator==(const location&, const location&) = default;
};

/// \throws validation_error `invalid_options`
[[nodiscard]] location parse_url(std::string_view url);

} // namespace colock::mongo::detail
