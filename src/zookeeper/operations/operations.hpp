// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/operation.hpp"
#include "remote/purpose.hpp"
#include "zookeeper/client.hpp"

#include <colock/adapter.hpp>
#include <colock/claim.hpp>
#include <colock/status.hpp>

#include <chrono>
#include <string>

namespace colock::zookeeper::detail {

using remote::key_purpose;
using remote::operation_ptr;
using remote::promise;

// What an adapter asks for: one file for each.

[[nodiscard]] operation_ptr make_create(client& owner, claim_ptr claim, completion<create_outcome> done);

[[nodiscard]] operation_ptr make_give_back(
    client& owner, claim_ptr claim, completion<release_outcome> done, promise given);

[[nodiscard]] operation_ptr make_extend(
    client& owner, claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done);

[[nodiscard]] operation_ptr make_is_valid(client& owner, claim_ptr claim, completion<valid_outcome> done);

[[nodiscard]] operation_ptr make_key_listing(
    client& owner, std::string key, key_purpose why, filter which, completion<list_outcome> done);

/// The holders of all keys, some buckets at a time.
/// \param cursor what those begin with; empty: the first page
[[nodiscard]] operation_ptr make_page(
    client& owner, filter which, const std::string& cursor, completion<list_outcome> done);

/// Nothing expires at the server; but one that is away has not said so.
[[nodiscard]] operation_ptr make_purge(client& owner, completion<list_outcome> done);

} // namespace colock::zookeeper::detail
