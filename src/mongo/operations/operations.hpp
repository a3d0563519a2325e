// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/commands/query.hpp"
#include "mongo/operations/operation_client.hpp"
#include "mongo/templates/lock_view.hpp"
#include "remote/requests/operation.hpp"

#include <colock/spi/adapter.hpp>
#include <colock/spi/claim.hpp>
#include <colock/status.hpp>

#include <chrono>
#include <cstddef>
#include <string>

namespace colock::inline v0::mongo::detail {

using remote::operation_ptr;

// Operations of the adapter.

[[nodiscard]] operation_ptr make_create(operation_client& owner, claim_ptr claim, completion<create_outcome> done);

[[nodiscard]] operation_ptr make_release(
    operation_client& owner, claim_ptr claim, completion<release_outcome> done, release_guarantee guarantee);

/// Releases a lock that any client may hold.
[[nodiscard]] operation_ptr make_release_by_token(
    operation_client& owner, const known_holder& other, completion<release_outcome> done);

[[nodiscard]] operation_ptr make_extend(
    operation_client& owner, claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done);

[[nodiscard]] operation_ptr make_is_valid(operation_client& owner, claim_ptr claim, completion<valid_outcome> done);

/// Transfers an exclusive lock to the next claim of the same key.
[[nodiscard]] operation_ptr make_hand_over(
    operation_client& owner, claim_ptr held, claim_ptr next, completion<hand_over_outcome> done);

/// \param token token of the holder, in hexadecimal
[[nodiscard]] operation_ptr make_adopt(
    operation_client& owner, std::string token, claim_ptr claim, completion<create_outcome> done);

/// \param from start of the page or step; unused if the filter has a key
[[nodiscard]] operation_ptr make_listing(
    operation_client& owner, listing_request request, page_start from, completion<list_outcome> done);

/// \param ttl ttl of an extension
[[nodiscard]] operation_ptr make_group_action(operation_client& owner, std::string id, group_action action,
    std::chrono::milliseconds ttl, completion<group_outcome> done);

[[nodiscard]] operation_ptr make_indexes(operation_client& owner, completion<failure_ptr> done);

} // namespace colock::inline v0::mongo::detail
