// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/policy/retry_schedule.hpp"
#include "core/state/record.hpp"

#include <cstdint>
#include <optional>

namespace colock::detail {

class core;

/// What an acquiring coroutine does next.
enum class step : unsigned char
{
    granted,
    again,
    yield,
    /// Until an attempt is answered.
    async_wait,
    /// Until the lock may be free.
    wait,
};

/// One look at where `wanted` stands, and what is done then: `acquire_plan` decides it.
/// \param wanted may be another one afterwards: one that was spent is left to be settled, and another goes on for it.
/// \param now if it was read a moment ago.
/// \param seen is set to the version that was looked at.
[[nodiscard]] step next_step(core& self, record::ptr& wanted, retry_schedule& schedule,
    std::optional<lease_clock::time_point> now, std::uint32_t& seen);

/// A claim that continues in the place of one that was spent, which is left to be settled.
[[nodiscard]] record::ptr take_over_from(core& self, const record::ptr& spent);

/// The uncontended acquire of a backend that answers at once: nothing is queued, parked or collected for later.
/// \return `again` if it has to go the long way.
[[nodiscard]] step grant_at_once(core& self, const record::ptr& wanted, lease_clock::time_point now);

/// An uncontended acquire in memory never suspends; every so often it lets others run.
inline constexpr unsigned max_immediate_grants = 64;

/// What may fail is done while there is nothing to take back: a backend that does not answer at once needs a token.
void prepare_token(const core& self, const record& wanted);

/// The mutex is held. True if it waits at the adapter, which is to be cancelled.
[[nodiscard]] bool begin_attempt(record& wanted, lease_clock::time_point now, bool counts);
/// Not under the mutex.
void send_attempt(core& self, const record::ptr& wanted, bool waits);

} // namespace colock::detail
