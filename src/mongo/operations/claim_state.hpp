// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/adapter/claim_slot.hpp"
#include "remote/requests/wait_sources.hpp"

#include <colock/spi/claim.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace colock::mongo::detail {

/// What the adapter keeps with a claim.
struct claim_state
{
    /// The latest moment, by the server's clock, at which a create that was not answered may still be carried out. 0:
    /// each was answered.
    std::int64_t in_doubt_until = 0;
    /// As far as is known: not once a create was answered busy, or it was given back.
    bool granted = true;
    /// It may stand in the document as the writer that waits.
    bool intends = false;
    std::optional<remote::interest> source{};

    void doubt(std::int64_t until) noexcept { in_doubt_until = std::max(in_doubt_until, until); }
};

/// Null for a claim that never was sent.
[[nodiscard]] inline claim_state* find_state(const claim& of) noexcept
{
    return remote::claim_slot<claim_state>::find(of);
}
[[nodiscard]] inline claim_state& state_of(claim& of)
{
    return remote::claim_slot<claim_state>::make(of);
}

} // namespace colock::mongo::detail
