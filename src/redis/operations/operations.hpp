// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/operations/operation_client.hpp"
#include "redis/pipeline/batch.hpp"

#include <colock/spi/adapter.hpp>
#include <colock/spi/claim.hpp>
#include <colock/status.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::redis::detail {

// The operations of the adapter. Each has its own file.

/// Lifetime of a writer's intent in milliseconds. A writer that waits for readers stores its intent, so that no new
/// readers get the lock. Each of its attempts renews the intent.
inline constexpr int intent_ms = 6000;

/// Makes the outcome from the reply of a script: remaining time and stored owner of the current holder.
[[nodiscard]] create_outcome busy(const reply& milliseconds_left, const reply& owner);

enum class create_step : unsigned char
{
    /// SET NX. Exclusive claims only.
    by_commands,
    by_script,
    by_whole_script,
    /// The lock is held, but its fence is not acceptable. The counter is raised, and another fence is taken.
    raise_fence,
    /// The lock is held, but without a fence. It is released before the failure is reported.
    undo,
};
[[nodiscard]] operation_ptr make_create(
    operation_client& owner, claim_ptr claim, completion<create_outcome> done, create_step first);

/// \param claims exclusive claims of different keys; at least one. In a cluster, all keys are in one slot. Fails with
///     `unsupported` while the slot moves.
[[nodiscard]] operation_ptr make_create_all(
    operation_client& owner, std::vector<claim_ptr> claims, completion<create_all_outcome> done);

/// Returns what another process needs to take over a lock: the part of the stored value that identifies the holder.
[[nodiscard]] std::string make_ticket(const settings& config, const claim& held);
/// Returns whether `ticket` has the form of a ticket for a claim of that mode. Another text belongs to no lock.
[[nodiscard]] bool may_be_ticket(std::string_view ticket, lock_mode mode) noexcept;
/// \param ticket for which `may_be_ticket` is true
[[nodiscard]] operation_ptr make_adopt(
    operation_client& owner, std::string ticket, claim_ptr claim, completion<create_outcome> done);

[[nodiscard]] operation_ptr make_release(
    operation_client& owner, claim_ptr claim, completion<release_outcome> done, release_guarantee guarantee);

/// Adds the command that releases a lock that is known to be held.
void push_release(boost::redis::request& request, script::form form, const operation_client& owner, const claim& held);

[[nodiscard]] operation_ptr make_extend(
    operation_client& owner, claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done);

[[nodiscard]] operation_ptr make_is_valid(operation_client& owner, claim_ptr claim, completion<valid_outcome> done);

/// A release followed by a create. Used if the server refuses the single step.
struct two_step_hand_over
{
    std::shared_ptr<adapter> backend;
    void (*start)(adapter&, claim_ptr held, claim_ptr next, completion<hand_over_outcome> done);
};
/// Passes an exclusive lock to the next claim of the same key.
[[nodiscard]] operation_ptr make_hand_over(operation_client& owner, two_step_hand_over fallback, claim_ptr held,
    claim_ptr next, completion<hand_over_outcome> done);

/// \param ttl new ttl if `action` is an extension; otherwise unused
[[nodiscard]] operation_ptr make_group_action(operation_client& owner, std::string id, group_action action,
    std::chrono::milliseconds ttl, completion<group_outcome> done);

/// Removes the expired holders of one key, at most `limit`.
[[nodiscard]] operation_ptr make_key_purge(
    operation_client& owner, const std::string& key, std::size_t limit, completion<list_outcome> done);
/// Returns the pattern with which SCAN finds the keys of locks whose key begins with `key_prefix`.
[[nodiscard]] std::string scan_pattern(const settings& config, std::string_view key_prefix);
/// COUNT of each SCAN: about the number of keys that it examines.
inline constexpr std::size_t keys_per_scan = 1000;

/// \param from cursor of the SCAN with which a page or step begins; unused if the filter has a key
[[nodiscard]] operation_ptr make_listing(
    operation_client& owner, listing_request request, std::uint64_t from, completion<list_outcome> done);

} // namespace colock::inline v0::redis::detail
