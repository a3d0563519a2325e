// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/operation.hpp"
#include "zookeeper/operations/operation_client.hpp"
#include "zookeeper/operations/page_start.hpp"

#include <colock/spi/adapter.hpp>
#include <colock/spi/claim.hpp>
#include <colock/status.hpp>

#include <chrono>
#include <string>

namespace colock::inline v0::zookeeper::detail {

using remote::operation_ptr;

// The operations of an adapter, each in a source file of its own.

[[nodiscard]] operation_ptr make_create(operation_client& owner, claim_ptr claim, completion<create_outcome> done);

[[nodiscard]] operation_ptr make_release(
    operation_client& owner, claim_ptr claim, completion<release_outcome> done, release_guarantee guarantee);

[[nodiscard]] operation_ptr make_extend(
    operation_client& owner, claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done);

[[nodiscard]] operation_ptr make_is_valid(operation_client& owner, claim_ptr claim, completion<valid_outcome> done);

/// A purge removes nothing, because nothing expires at the server. It fails if the server does not answer.
/// \param from start of the page; unused if the filter has a key
[[nodiscard]] operation_ptr make_listing(
    operation_client& owner, listing_request request, page_start from, completion<list_outcome> done);

/// Releases all locks of a group.
[[nodiscard]] operation_ptr make_group_release(operation_client& owner, std::string id, completion<group_outcome> done);

} // namespace colock::inline v0::zookeeper::detail
