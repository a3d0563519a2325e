// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/pipeline/reply.hpp"
#include "redis/settings.hpp"
#include "redis/url.hpp"
#include "remote/requests/lost_requests.hpp"

#include <colock/spi/adapter.hpp>

#include <boost/redis/request.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace colock::redis::detail {

/// What the server is told that we are.
inline constexpr std::string_view our_name = "colock";

/// Speaks RESP3, with user and password if there are any, and under that name unless it is empty.
void push_hello(
    boost::redis::request& request, const std::string& user, const std::string& password, std::string_view name);

/// Says who we are, and asks what the server is.
void push_greeting(boost::redis::request& request, const location& who);

/// What the answers to that have told.
struct welcome
{
    /// Why no lock can be kept there; null if that is not so.
    failure_ptr refused{};
    /// What the server knows this connection by.
    remote::lost_requests::identity identity{};
    /// Of settings with which locks are not as safe as they could be.
    std::vector<std::string> warnings{};
    /// The server is a node of a cluster.
    bool in_cluster = false;
    /// The server has replicas, one of which may be promoted; or INFO is refused, so that nobody can know.
    bool may_have_replicas = false;
};
[[nodiscard]] welcome read_welcome(const location& who, const reply_list& replies);

/// Asks which of our commands the server refuses: by a script, sent by each of the two commands
/// that send scripts.
///
/// Knows commands only, not patterns of keys and channels, except for the keys of the probe and of the fence counter.
void push_rights_check(boost::redis::request& request, const settings& config);

/// What the answers to that have told.
struct rights
{
    /// Why locks could not be given back or renewed; null if they can.
    failure_ptr refused{};
    /// Of what cannot be done with the rights that there are.
    std::vector<std::string> warnings{};
};
[[nodiscard]] rights read_rights(const reply& by_text, const reply& by_digest);

[[nodiscard]] failure_ptr replica_in_place_of_master();

/// The value of a line of INFO; empty: there is none.
[[nodiscard]] std::string_view info_field(std::string_view info, std::string_view name);

} // namespace colock::redis::detail
