// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "net/url.hpp"

#include <colock/mongo/adapter.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::mongo::detail {

using remote::endpoint;

/// Authentication mechanism in which the certificate of the client replaces the password.
inline constexpr std::string_view x509_mechanism = "MONGODB-X509";

/// Servers, credentials and TLS settings, as given by a URL.
struct location
{
    std::vector<endpoint> hosts{};
    std::string replica_set{};
    bool direct = false;
    bool tls = false;
    std::string ca_file{};
    /// File that contains both certificate and key.
    std::string certificate_key_file{};
    std::string user{};
    std::string password{};
    /// Empty: not specified.
    std::string auth_source{};
    std::string auth_mechanism{};
    /// Database in the path; empty: none.
    std::string database{};

    friend bool operator==(const location&, const location&) = default;
};

/// Returns the options with those of the query of the URL, which the returned URL does not contain any more.
/// \throws validation_error `invalid_options`
[[nodiscard]] options take_url_options(options options);

/// Parses a URL without the options of colock, but with the parameters of the connection string format.
/// \throws validation_error `invalid_options`
[[nodiscard]] location parse_url(std::string_view url);

} // namespace colock::inline v0::mongo::detail
