// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/driver/server_identity.hpp"

#include <boost/asio/ssl/context.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

struct _mongoc_uri_t;

namespace colock::inline v0 {
namespace asio = boost::asio;
}

namespace colock::inline v0::mongo::detail {

/// Credentials of a user.
struct credentials
{
    std::string user{};
    /// Empty for MONGODB-X509.
    std::string password{};
    /// Database in which the user is defined.
    std::string source = "admin";
    /// SCRAM-SHA-1, SCRAM-SHA-256, PLAIN or MONGODB-X509; empty: the best SCRAM mechanism that the server has for the
    /// user.
    std::string mechanism{};
};

/// Server to connect to, with its TLS settings and credentials.
struct destination
{
    /// Host name or IP address. An IPv6 address has no brackets.
    std::string host{};
    std::string port{};
    /// Must outlive the connection. Null: no TLS.
    asio::ssl::context* tls = nullptr;
    /// Name for which the server's certificate must be valid; empty: `host`.
    std::string server_name{};
    /// The server that has to answer; nullopt: any.
    std::optional<server_identity> identity{};
    /// Null: the connection is not authenticated.
    std::shared_ptr<const credentials> login{};
    /// Time limit of an attempt to connect, from the lookup of the name to the answer to `hello`.
    std::chrono::milliseconds connect_timeout{2000};

    /// Returns host and port as in URLs and messages: an IPv6 address has brackets.
    [[nodiscard]] std::string name() const;
};

struct uri_deleter
{
    void operator()(::_mongoc_uri_t* uri) const noexcept;
};
using uri_ptr = std::unique_ptr<::_mongoc_uri_t, uri_deleter>;

/// Returns the URI for a driver client that retries nothing, does not monitor servers in the background and sends no
/// command that colock did not ask for. The client never sleeps, and gives up a connection attempt after
/// `connect_timeout`.
///
/// Every destination has such a URI, even a destination that no URL can name: colock connects by itself, and the driver
/// needs the host only for its messages. The credentials must be UTF-8 without NUL.
[[nodiscard]] uri_ptr driver_uri(const destination& to);

} // namespace colock::inline v0::mongo::detail
