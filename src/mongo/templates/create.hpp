// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "mongo/templates/expressions.hpp"

namespace colock::inline v0::mongo::detail::templates {

// Texts of the commands and statements that grant free locks. They are documented at `commands`. The `create` texts are
// single stages.

[[nodiscard]] string create_exclusive(bool queues, bool has_ttl);
[[nodiscard]] string create_first_exclusive(bool queues, bool has_ttl);
[[nodiscard]] string create_shared(bool queues, bool has_ttl);
/// Makes a command of one stage.
[[nodiscard]] string as_command(const string& create);

/// \param claim_token token of the claim
[[nodiscard]] string batched_first_exclusive(bool has_ttl, const string& claim_token, const string& fence);

/// Returns the stages of a pipeline for several shared claims of one key.
[[nodiscard]] string create_several(bool queues, bool has_ttl);
/// \param claim_tokens tokens of the claims
/// \param count number of the claims
/// \param holders array of a `several_holder` for each claim
[[nodiscard]] string create_several(
    bool queues, bool has_ttl, const string& claim_tokens, const string& count, const string& holders);
/// Returns an array with the holder data of one of several claims; empty if no place is left for the claim.
/// \param claim_token token of the claim
/// \param place position of the claim among these claims, from 0
[[nodiscard]] string several_holder(const string& claim_token, const string& place, bool has_ttl);

} // namespace colock::inline v0::mongo::detail::templates
