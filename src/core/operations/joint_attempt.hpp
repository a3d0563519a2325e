// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/policy/retry_schedule.hpp"
#include "core/state/record.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace colock::detail {

class core;

// Several locks that are asked for in one step, on a backend that grants all or none.

/// A backend may do nothing else while it looks at them: an acquire of more locks takes them one by one.
inline constexpr std::size_t most_at_once = 64;

/// Asks for all of them in one step. Until the answer is taken, each has a place in its key's local queue.
/// \param is_retry counted in the statistics
/// \return false, and nothing is done: others of this locker wait for one of the keys.
[[nodiscard]] bool attempt_all(core& self, const std::vector<record::ptr>& wanted, bool is_retry);

/// Whether the answer of `asked` has to be awaited, from what `seen` is set to on.
/// \throws error if the policy's time is over, the locker closes or the process has forked.
[[nodiscard]] bool is_unanswered(core& self, record& asked, const retry_schedule& schedule, std::uint32_t& seen);

/// Why not all of them were granted.
struct joint_refusal
{
    std::size_t which = 0;
    /// `granted` for a grant that came too late to be used.
    create_outcome answer{};
};

/// Returns why an attempt that was answered was refused; empty if all were granted. A refused attempt leaves nothing
/// behind but the first claim's place in its local queue: a place at a higher key that is kept while a lower key is
/// missing could deadlock.
[[nodiscard]] std::optional<joint_refusal> take_joint_answer(core& self, const std::vector<record::ptr>& asked);

} // namespace colock::detail
