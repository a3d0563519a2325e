// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/reply.hpp"
#include "redis/settings.hpp"
#include "redis/url.hpp"
#include "remote/requests/lost_requests.hpp"

#include <colock/spi/adapter.hpp>

#include <boost/redis/request.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::redis::detail {

/// Name of the connection, as CLIENT LIST shows it.
inline constexpr std::string_view client_name = "colock";

/// Adds a HELLO that selects RESP3. Authenticates if there is a password, and names the connection unless `name` is
/// empty.
void push_hello(
    boost::redis::request& request, const std::string& user, const std::string& password, std::string_view name);

/// Adds the commands that authenticate, select the database, and query the server's properties.
void push_greeting(boost::redis::request& request, const std::string& user, const std::string& password, int database);

/// Adds an AUTH, which replaces the credentials of the connection.
void push_auth(boost::redis::request& request, const std::string& user, const std::string& password);

/// Result of the greeting.
struct greeting_result
{
    /// Reason why locks cannot be stored on this server, or null.
    failure_ptr failure{};
    /// How the server identifies this connection.
    remote::lost_requests::identity identity{};
    /// Warnings about server settings that make locks less safe.
    std::vector<std::string> warnings{};
    /// True if the server is a node of a cluster.
    bool in_cluster = false;
    /// True if the server has replicas, one of which may be promoted. Also true if INFO is refused, because then the
    /// replicas are unknown.
    bool may_have_replicas = false;
};
[[nodiscard]] greeting_result read_greeting(const location& location, const reply_list& replies);

/// Returns the failure of a client that has connected to a replica and needs the master.
[[nodiscard]] failure_ptr make_replica_failure();

} // namespace colock::inline v0::redis::detail
