// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "redis/client.hpp"
#include "redis/pipeline/batch.hpp"
#include "remote/adapter/purpose.hpp"

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

namespace colock::redis::detail {

using remote::key_purpose;
using remote::promise;

// What an adapter asks of a server: one file for each.

/// A writer's intent outlives this many milliseconds without the writer: about three of its safety polls.
inline constexpr int intent_ms = 6000;

/// What a script has answered of whoever is in the way: the time that is left, and what is stored of the owner.
[[nodiscard]] create_outcome busy(const reply& milliseconds_left, const reply& owner);

enum class create_step : unsigned char
{
    /// SET NX, and a fence with those of the batch. A reader asks with them whether a writer waits.
    short_way,
    by_script,
    by_whole_script,
    /// Held, but with a fence that cannot be given: the counter is lifted, and asked again.
    lift_fence,
    /// Held, but without a fence: given back before that is reported.
    undo,
    /// Held, but a writer was there first: the same.
    give_way,
};
[[nodiscard]] operation_ptr make_create(
    client& owner, claim_ptr claim, completion<create_outcome> done, create_step first);

/// \param claims exclusive ones, of different keys; at least one
[[nodiscard]] operation_ptr make_create_all(
    client& owner, std::vector<claim_ptr> claims, completion<create_all_outcome> done);

/// What another process needs to go on with a lock: the name that its holder is stored under, as far as it is compared.
[[nodiscard]] std::string make_ticket(const settings& config, const claim& held);
/// Whether it may be one for a claim of that mode; else nothing is held under it.
[[nodiscard]] bool may_be_ticket(std::string_view ticket, lock_mode mode) noexcept;
/// \param ticket one that may be one
[[nodiscard]] operation_ptr make_adopt(
    client& owner, std::string ticket, claim_ptr claim, completion<create_outcome> done);

[[nodiscard]] operation_ptr make_give_back(
    client& owner, claim_ptr claim, completion<release_outcome> done, promise given);

/// The command that gives back what is held for certain.
void push_release(boost::redis::request& request, script::form form, const settings& config, const claim& held);

[[nodiscard]] operation_ptr make_extend(
    client& owner, claim_ptr claim, std::chrono::milliseconds ttl, completion<extend_outcome> done);

[[nodiscard]] operation_ptr make_is_valid(client& owner, claim_ptr claim, completion<valid_outcome> done);

/// A release, then a create: where the server refuses to do both in one step.
struct long_way
{
    std::shared_ptr<adapter> backend;
    void (*start)(adapter&, claim_ptr held, claim_ptr next, completion<hand_over_outcome> done);
};
/// Of an exclusive lock, to the next claim of the same key.
[[nodiscard]] operation_ptr make_hand_over(
    client& owner, long_way otherwise, claim_ptr held, claim_ptr next, completion<hand_over_outcome> done);

[[nodiscard]] operation_ptr make_key_listing(
    client& owner, std::string key, key_purpose why, filter which, completion<list_outcome> done);

/// \param ttl of an extension
[[nodiscard]] operation_ptr make_group_action(
    client& owner, std::string id, group_action what, std::chrono::milliseconds ttl, completion<group_outcome> done);

/// Walks some keys of the prefix.
enum class walk_purpose : unsigned char
{
    list,
    sweep,
};
/// \param limit of a sweep; 0: as many as one step removes
/// \param from as `read_walk_cursor` has it
[[nodiscard]] operation_ptr make_walk(client& owner, walk_purpose why, filter which, std::size_t limit,
    std::uint64_t from, completion<list_outcome> done);
/// Nothing if it is none.
[[nodiscard]] std::optional<std::uint64_t> read_walk_cursor(std::string_view cursor);

} // namespace colock::redis::detail
