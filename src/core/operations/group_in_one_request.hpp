// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/policy/retry_schedule.hpp"
#include "core/state/lock_record.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace colock::inline v0::detail {

class core;

// Functions that acquire several locks in one step, on a backend that grants all or none.

/// Maximum number of locks per step. A backend may do nothing else while it processes them. If an acquire requests more
/// locks, they are acquired one by one.
inline constexpr std::size_t max_keys_per_step = 64;

/// Asks for all locks in one step. Until the answer is taken, each claim has a place in the local queue of its key.
/// \param is_retry whether the statistics count a retry
/// \returns false, without any effect, if other callers of this locker wait for one of the keys
[[nodiscard]] bool attempt_all(core& self, const std::vector<lock_record::ptr>& records, bool is_retry);

/// \returns whether the answer to `record` has to be awaited; then `seen` is the version at which there was no answer
/// \throws error if the time of the policy is over or the locker closes
[[nodiscard]] bool must_await_batch(core& self, lock_record& record, retry_schedule& schedule, std::uint32_t& seen);

/// The reason why not all locks were granted.
struct batch_refusal
{
    std::size_t which = 0;
    /// `granted` for a grant that arrived too late to be used.
    create_outcome answer{};
};

/// Returns why an answered attempt was refused; empty if all locks were granted. After a refusal, only the first claim
/// keeps its place in its local queue. A place at a higher key, kept while a lower key is missing, could cause a
/// deadlock.
[[nodiscard]] std::optional<batch_refusal> take_batch_answer(core& self, const std::vector<lock_record::ptr>& records);

} // namespace colock::inline v0::detail
