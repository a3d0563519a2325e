// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/error.hpp>
#include <colock/spi/outcome.hpp>

#include "core/state/key_queues.hpp"
#include "core/state/record.hpp"

namespace colock::detail {

class core;
class retry_schedule;

/// What a verb ends with when it could not do what it was asked for. None of these takes the mutex.
[[nodiscard]] error_context context_of(const core& self, const record& wanted);
[[noreturn]] void throw_failed(const failure& why, error_context context);
[[noreturn]] void throw_shutting_down(const core& self, const record& wanted);
[[noreturn]] void throw_from_parent(const core& self, const record& wanted);
[[noreturn]] void throw_refused(const core& self, const record& wanted);
/// What is asked for again after a fork would be granted to the parent as well.
inline void throw_if_from_parent(const core& self, const record& wanted)
{
    if (wanted.is_from_parent())
        throw_from_parent(self, wanted);
}
/// Bad input, which was found when the verb was called.
inline void throw_if_refused(const core& self, const record& wanted)
{
    if (wanted.refused)
        throw_refused(self, wanted);
}

// Of an acquire.
[[nodiscard]] failure_ptr too_late_to_use();
/// What is known of the attempts of `wanted` so far. The mutex is held.
[[nodiscard]] last_answer answer_to(const core& self, const record& wanted, lease_clock::time_point now);
/// Returns what a caller knows that has asked nothing itself and stands behind those in `queue`. The mutex is held.
[[nodiscard]] last_answer answer_to_first(const core& self, const key_queue& queue, lease_clock::time_point now);
/// Why the lock cannot be called busy: what is known of a backend that did not answer, or its last error. Null if the
/// lock is busy, or another caller of this locker is first.
/// \param silence the detail where there was no answer
[[nodiscard]] failure_ptr why_not_busy(const core& self, const last_answer& last, const char* silence);
/// Throws `why_not_busy`, or else that the lock stayed busy.
[[noreturn]] void throw_retries_ended(
    const core& self, const record& wanted, const retry_schedule& schedule, const last_answer& last);

// Of what is asked about a lock.
enum class effect : unsigned char
{
    none,
    writes,
};
/// Why an operation that has had its time was not answered.
[[nodiscard]] failure_ptr unanswered(const core& self);
/// The same of one that belongs to `asked`, which the parent of a fork may have asked for.
[[nodiscard]] failure_ptr unanswered(const core& self, const record& asked);
/// A question that has changed nothing leaves nothing in doubt.
/// \param why null: there was no answer in time.
[[noreturn]] void throw_unanswered(const core& self, const failure_ptr& why, effect what, error_context context);

} // namespace colock::detail
