// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/adapter/claim_slot.hpp"
#include "remote/requests/wait_sources.hpp"

#include <colock/spi/claim.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace colock::inline v0::mongo::detail {

/// State that the adapter stores in a claim.
struct claim_state
{
    /// The latest time, by the server's clock, at which an unanswered create may still be carried out. 0: each create
    /// was answered.
    std::int64_t in_doubt_until = 0;
    /// Whether the claim may hold the lock. False after a create was answered with busy, and after a release.
    bool granted = true;
    /// The claim may be stored in the document as the writer that waits.
    bool is_waiting_writer = false;
    /// Registration for the release events of the lock, while the claim waits.
    std::optional<remote::source_subscription> source{};

    void mark_in_doubt(std::int64_t until) noexcept { in_doubt_until = std::max(in_doubt_until, until); }
};

/// Returns null for a claim that was never sent.
[[nodiscard]] inline claim_state* find_state(const claim& claim) noexcept
{
    return remote::claim_slot<claim_state>::find(claim);
}
[[nodiscard]] inline claim_state& state_of(claim& claim)
{
    return remote::claim_slot<claim_state>::make(claim);
}

} // namespace colock::inline v0::mongo::detail
