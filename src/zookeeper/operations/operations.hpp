// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/requests/operation.hpp"
#include "zookeeper/client.hpp"

#include <colock/spi/adapter.hpp>
#include <colock/spi/claim.hpp>
#include <colock/status.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace colock::inline v0::zookeeper::detail {

using remote::operation_ptr;

// The operations of an adapter, each in a source file of its own.

[[nodiscard]] operation_ptr make_create(client& owner, claim_ptr claim, completion<create_outcome> done);

[[nodiscard]] operation_ptr make_release(
    client& owner, claim_ptr claim, completion<release_outcome> done, release_guarantee guarantee);

[[nodiscard]] operation_ptr make_extend(
    client& owner, claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done);

[[nodiscard]] operation_ptr make_is_valid(client& owner, claim_ptr claim, completion<valid_outcome> done);

/// Where a page begins: the bucket, and the name in this bucket after which it begins.
struct page_start
{
    std::size_t bucket = 0;
    std::string after{};

    static constexpr std::size_t bucket_count = 256;
    [[nodiscard]] static std::string name_of(std::size_t bucket);

    [[nodiscard]] std::string cursor() const;
    /// \param cursor a text that `cursor` has returned; empty: the first page
    /// \param folders number of folders of the layout
    /// \return nullopt if the cursor is not valid
    [[nodiscard]] static std::optional<page_start> from(std::string_view cursor, std::size_t folders);
};

/// A purge removes nothing, because nothing expires at the server. It fails if the server does not answer.
/// \param from start of the page; unused if the filter has a key
[[nodiscard]] operation_ptr make_listing(
    client& owner, listing_request request, page_start from, completion<list_outcome> done);

/// Releases all locks of a group.
[[nodiscard]] operation_ptr make_group_release(client& owner, std::string id, completion<group_outcome> done);

} // namespace colock::inline v0::zookeeper::detail
