// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/record.hpp"
#include "core/retry_schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace colock::detail {

class core;

// Several locks that are asked for in one step, on a backend that grants all or none.

/// A backend may do nothing else while it looks at them: who wants more takes them one by one.
inline constexpr std::size_t most_at_once = 64;

/// Each of them takes its place in its key's local queue, as if it had been asked for alone.
/// \return false, and nothing is done: others of this locker wait for one of the keys.
[[nodiscard]] bool attempt_all(core& self, const std::vector<record::ptr>& wanted, const retry_schedule& schedule);

/// Whether its answer has to be awaited, from what `seen` is set to on.
/// \throws error if it is not to be awaited any more.
[[nodiscard]] bool is_unanswered(core& self, record& asked, const retry_schedule& schedule, std::uint32_t& seen);

/// Something was said of it: it is busy, or it failed.
[[nodiscard]] bool is_answered(core& self, const record& asked);

/// Now and then, after so many grants that were answered at once.
[[nodiscard]] bool lets_others_run(core& self, std::size_t grants);

} // namespace colock::detail
