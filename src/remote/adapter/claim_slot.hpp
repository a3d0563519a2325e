// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/spi/claim.hpp>

#include <memory>

namespace colock::inline v0::remote {

/// Access to the state that an adapter stores in the slot of a claim.
template <class State>
struct claim_slot
{
    /// Returns null if no state has been stored yet.
    [[nodiscard]] static State* find(const claim& claim) noexcept { return static_cast<State*>(claim.slot.get()); }
    [[nodiscard]] static State& make(claim& claim)
    {
        if (!claim.slot)
            claim.slot = std::make_shared<State>();
        return *find(claim);
    }
};

} // namespace colock::inline v0::remote
