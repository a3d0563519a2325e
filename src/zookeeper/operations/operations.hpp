// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/adapter/purpose.hpp"
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

/// In which bucket a page begins, and behind which name there.
struct page_start
{
    std::size_t bucket = 0;
    std::string behind{};

    static constexpr std::size_t buckets = 256;
    [[nodiscard]] static std::string name_of(std::size_t bucket);

    [[nodiscard]] std::string text() const;
    /// \param cursor as `text` has told; empty: the first
    /// \param folders how many the layout has
    /// \return nothing for what it has not
    [[nodiscard]] static std::optional<page_start> from(std::string_view cursor, std::size_t folders);
};

/// The holders of some keys.
[[nodiscard]] operation_ptr make_page(client& owner, filter which, page_start from, completion<list_outcome> done);

/// Nothing expires at the server; but one that is away has not said so.
/// Of all that hold something under that id.
[[nodiscard]] operation_ptr make_group_release(client& owner, std::string id, completion<group_outcome> done);

[[nodiscard]] operation_ptr make_purge(client& owner, completion<list_outcome> done);

} // namespace colock::zookeeper::detail
