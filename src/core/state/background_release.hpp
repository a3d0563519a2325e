// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/record.hpp"

#include <cstdint>

namespace colock::detail {

class core;

// The way back: from the moment nobody wants a lock any more until `cleanup_queue` has it.

/// Gives a held lock back in the background.
void release_in_background(core& self, record& held) noexcept;
/// `wanted` leaves without having handed out what it waited for: its frame died, or goes on with another claim.
void abandon_acquire(core& self, const record::ptr& wanted) noexcept;
/// The quiet release of a lock that nobody waits for, on a backend that answers at once. False if it has to go the long
/// way, or has to be tried again.
[[nodiscard]] bool release_at_once(core& self, const record::ptr& held);
struct release_start
{
    /// The lock was held until this call.
    bool was_held = false;
    /// The answer has to be awaited, from what `seen` is set to on.
    bool waits = false;
};
/// \param seen null: nobody waits for the answer.
release_start begin_release(core& self, record& held, std::uint32_t* seen = nullptr);
/// The same for one that has begun.
[[nodiscard]] bool must_await_answer(core& self, record& ending, std::uint32_t& seen);

} // namespace colock::detail
