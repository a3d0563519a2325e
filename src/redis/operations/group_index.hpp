// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/operations/operation_client.hpp"
#include "redis/pipeline/batch.hpp"

#include <colock/spi/claim.hpp>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::redis::detail {

// The index of a group in a cluster. It is in its own slot, so separate requests maintain it: an entry is written
// before its lock is granted or extended, and removed after the release. The index may contain locks that are not held,
// but it misses none that is held.

/// Adds the arguments with which the script `enter_group` enters a lock for this ttl.
/// \param entry token followed by the key of the lock
void append_entry(
    std::vector<std::string>& arguments, const settings& config, std::string entry, std::chrono::milliseconds ttl);

/// Returns an operation that enters the claims in the indexes of their groups, and then starts `next`. If an entry
/// cannot be written, `next` fails as an operation that was not sent.
/// \param new_ttl by default, the ttl of each claim
/// \returns `next` if there is nothing to write
[[nodiscard]] operation_ptr enter_before(operation_client& owner, std::span<const claim_ptr> claims, operation_ptr next,
    std::optional<std::chrono::milliseconds> new_ttl = {});

/// Removes entries from the index of a group, in the background. An entry whose removal fails stays until it expires;
/// that of a lock without ttl does not expire.
void leave_group(operation_client& owner, std::string_view group, std::vector<std::string> entries) noexcept;
/// Removes the entry of a claim that has ended. Its token cannot be used again, because the removal may arrive late.
void leave_group(operation_client& owner, claim& ended) noexcept;
/// Does the same for a claim without ttl, whose entry would never expire. Called after an attempt that failed,
/// because the core may then give the claim up. While an earlier attempt may still be granted, the entry stays. The
/// core continues with another claim.
void leave_group_if_without_ttl(operation_client& owner, claim& refused) noexcept;

} // namespace colock::inline v0::redis::detail
