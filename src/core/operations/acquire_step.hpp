// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/policy/retry_schedule.hpp"
#include "core/state/lock_record.hpp"

#include <cstdint>
#include <optional>

namespace colock::inline v0::detail {

class core;

/// The next step of an acquiring coroutine.
enum class step : unsigned char
{
    granted,
    /// Call `next_step` again without a wait.
    again,
    /// Let other handlers run first. Afterwards, call `next_step` again. From `grant_at_once`: the lock is granted, and
    /// is returned afterwards.
    yield,
    /// Wait until an attempt is answered.
    await_answer,
    /// Wait until the lock may be free.
    wait,
};

/// Checks the state of `record`, and takes the next step, which `acquire_plan` decides.
/// \param record may be replaced: if the claim cannot be used any more, it is abandoned, and a new one continues the
///   acquire
/// \param now the current time, if it was read a moment ago
/// \param seen is set to the version that was checked
[[nodiscard]] step next_step(core& self, lock_record::ptr& record, retry_schedule& schedule,
    std::optional<lease_clock::time_point> now, std::uint32_t& seen);

/// Abandons `replaced`, a claim that cannot be used any more, and returns a new claim that continues the acquire.
[[nodiscard]] lock_record::ptr replace_claim(core& self, const lock_record::ptr& replaced);

/// The uncontended acquire on a backend that answers at once: nothing is queued, suspended or deferred.
/// \returns `granted`; `yield` if the lock is granted, but other handlers must run before it is returned; `again` if
///     the acquire needs the general procedure
[[nodiscard]] step grant_at_once(core& self, const lock_record::ptr& record, lease_clock::time_point now);

/// Maximum number of consecutive grants without a suspension. An uncontended acquire in memory never suspends, and must
/// let other handlers run now and then.
inline constexpr unsigned max_immediate_grants = 64;

/// Generates the token, before the record enters a queue, because this may fail. A backend that answers at once may
/// need no token.
void prepare_token(const core& self, const lock_record& record);

/// Sends the attempt that `key_queues::prepare_attempt` has begun. The mutex must not be held.
void send_attempt(core& self, const lock_record::ptr& record, bool must_cancel_wait);

} // namespace colock::inline v0::detail
