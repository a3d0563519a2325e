// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "remote/adapter/claim_slot.hpp"
#include "remote/requests/lost_requests.hpp"
#include "remote/requests/wait_sources.hpp"
#include "zookeeper/session/sessions.hpp"

#include <colock/spi/claim.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace colock::zookeeper::detail {

/// What the adapter keeps with a claim.
struct claim_state
{
    /// In which it has a node, or may have.
    remote::connection_number session = 0;
    session_users::session_ref session_ref{};
    /// Where its node is; empty: none is known.
    std::string node{};
    /// The number of the transaction that made it.
    std::uint64_t fence = 0;
    /// It was first in the line.
    bool granted = false;
    /// Its node in the index of its group was asked for in that session, and is, or may be, there.
    bool indexed = false;
    /// Creates that were sent, and not answered.
    remote::doubts creates{};

    /// What it waits for, as `watches` calls it; and that it does.
    std::string predecessor{};
    std::string watched{};
    std::optional<remote::interest> source{};
    /// Its wait was ended without an event: the next attempt asks only whether all is as it was.
    bool polls = false;

    /// It may have a node in the session in use; what was in another is over with that, or in doubt.
    void enter(sessions& all);
    /// It has no node.
    void leave(sessions& all) noexcept;
    void stop_waiting() noexcept;
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

/// Its folder was listed in the session in use, behind all that was sent in it for the claim, and what was found there
/// is known or gone.
void note_look(const sessions& all, claim& of);

} // namespace colock::zookeeper::detail
