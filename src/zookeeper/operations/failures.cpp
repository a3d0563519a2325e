// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "zookeeper/operations/failures.hpp"

#include <string>

namespace colock::inline v0::zookeeper::detail {

namespace {

/// The C client has no name for this code.
constexpr int quota_exceeded = -125;

} // namespace

failure_ptr failure_of(const reply& reply)
{
    const auto code = " (the driver's code is " + std::to_string(reply.code) + ')';
    switch (reply.outcome) {
    case status::unanswered:
        return make_failure(errc::outcome_unknown, "the connection was lost before the request was answered");
    case status::access_denied:
        return make_failure(errc::access_denied, "the server denies access to the node" + code);
    case status::refused:
        // This client has refused the request, because it was too large.
        if (reply.code == 0)
            return make_failure(errc::invalid_key, "the request with this key would exceed the server's limit");
        if (reply.code == quota_exceeded) {
            return make_failure(errc::unavailable,
                "a quota of the server is exceeded; raise the quota of the root folder, or remove nodes" + code);
        }
        return make_failure(errc::misconfigured_backend, "the server refused the request" + code);
    default:
        return make_failure(errc::unavailable, "the server could not carry out the request now" + code);
    }
}

} // namespace colock::inline v0::zookeeper::detail
