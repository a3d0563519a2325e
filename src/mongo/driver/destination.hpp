// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/ssl/context.hpp>

#include <memory>
#include <string>

struct _mongoc_uri_t;

namespace colock {
namespace asio = boost::asio;
}

namespace colock::mongo::detail {

/// Credentials of a user.
struct credentials
{
    std::string user{};
    /// Empty for MONGODB-X509.
    std::string password{};
    /// Database that knows the user.
    std::string source = "admin";
    /// SCRAM-SHA-1, SCRAM-SHA-256, PLAIN or MONGODB-X509; empty: the best SCRAM that the server has for the user.
    std::string mechanism{};
};

/// Where a lane leads.
struct destination
{
    /// A name or an address; one of IPv6 without brackets.
    std::string host{};
    std::string port{};
    /// Lives as long as the lane; null: none.
    asio::ssl::context* tls = nullptr;
    /// That its certificate must be for; empty: `host`.
    std::string server_name{};
    /// Null: the connection is not authenticated.
    std::shared_ptr<const credentials> as{};

    /// As a URL and messages name it: an address of IPv6 in brackets.
    [[nodiscard]] std::string name() const;
};

struct uri_deleter
{
    void operator()(::_mongoc_uri_t* gone) const noexcept;
};
using uri_ptr = std::unique_ptr<::_mongoc_uri_t, uri_deleter>;

/// For a client of the driver's that tries nothing again, looks for nobody in the background and asks nothing that we
/// did not ask. Of what it sleeps for, none is left; a connection is given up after two seconds. There is one for every
/// destination, one that no URL can name included: the driver needs it for its messages alone, as we connect. The
/// credentials are UTF-8 without NUL.
[[nodiscard]] uri_ptr driver_uri(const destination& to);

} // namespace colock::mongo::detail
