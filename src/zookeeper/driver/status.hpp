// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

namespace colock::inline v0::zookeeper::detail {

/// Outcome of a request. The order matters: a write with an outcome up to `bad_version` was processed by the leader,
/// and from `unsent` on, the outcome says nothing about the node.
enum class status : unsigned char
{
    ok,
    no_node,
    node_exists,
    not_empty,
    bad_version,
    access_denied,
    /// The server has refused the request for another reason, see `reply::code`.
    refused,
    /// The request was not carried out, because another request of the same transaction failed. It has to be sent
    /// again, in a transaction of its own.
    batch_aborted,
    /// The request was certainly not sent.
    unsent,
    /// The request may have been sent, and may take effect as long as its session exists.
    unanswered,
    /// The server has not carried out the request, because its session has ended.
    ended,
};

/// Returns what one of the driver's error codes means for a request.
[[nodiscard]] status status_of(int code) noexcept;

} // namespace colock::inline v0::zookeeper::detail
