// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/reply.hpp"
#include "redis/url.hpp"
#include "remote/lost_requests.hpp"

#include <colock/adapter.hpp>

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
    /// The server has replicas, one of which may be promoted; or INFO is refused, so that nobody can know.
    bool may_have_replicas = false;
};
[[nodiscard]] welcome read_welcome(const location& who, const reply_list& replies);

[[nodiscard]] failure_ptr replica_in_place_of_master();

/// The value of a line of INFO; empty: there is none.
[[nodiscard]] std::string_view info_field(std::string_view info, std::string_view name);

} // namespace colock::redis::detail
