// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/error.hpp>
#include <colock/spi/outcome.hpp>

#include "core/state/key_queues.hpp"
#include "core/state/lock_record.hpp"

namespace colock::inline v0::detail {

class core;
class retry_schedule;

// The errors that end an operation. None of these functions takes the mutex.

/// Returns the context of an acquire.
[[nodiscard]] error_context context_of(const core& self, const lock_record& record);
/// Returns the context of an operation on a lock that was granted before.
/// \param attempts number of requests that this operation has sent
[[nodiscard]] error_context context_of_held(
    const core& self, const lock_record& record, lease_clock::time_point began, std::size_t attempts);
[[noreturn]] void throw_failed(const failure& failure, error_context context);
[[noreturn]] void throw_shutting_down(const core& self, const lock_record& record);
[[noreturn]] void throw_invalid(const core& self, const lock_record& record);
/// Throws if the call of the operation has found invalid input.
inline void throw_if_invalid(const core& self, const lock_record& record)
{
    if (record.acquire_state().input_failure)
        throw_invalid(self, record);
}

/// Describes why an operation on a lock whose lease has ended is refused.
[[nodiscard]] std::string lease_end_text(lost_reason reason);

// Errors of an acquire.
[[nodiscard]] failure_ptr make_late_grant_failure();
/// Returns what is known about the attempts of `record` so far. The mutex must be held.
[[nodiscard]] last_answer last_answer_for(const core& self, const lock_record& record, lease_clock::time_point now);
/// Returns what a caller that waits behind the members of `queue` knows, although it has sent no request itself. The
/// mutex must be held.
[[nodiscard]] last_answer answer_to_heads(const core& self, const key_queue& queue, lease_clock::time_point now);
/// Returns null if the lock is to be reported as busy: the backend has said so, or another caller of this locker is
/// first. Otherwise returns the last error of the backend, or that it has not answered.
/// \param silence the detail of the error for a backend that has not answered
[[nodiscard]] failure_ptr failure_unless_busy(const core& self, const last_answer& last, const char* silence);
/// Throws `failure_unless_busy`. If there is no such reason, calls `schedule.end_busy` and throws a `retry_error`.
[[noreturn]] void throw_retries_ended(
    const core& self, const lock_record& record, retry_schedule& schedule, const last_answer& last);

/// Returns the code of an acquire whose frame is destroyed before it ends: it was cancelled, or one of the execution
/// contexts was destroyed.
[[nodiscard]] error_code code_of_destroyed_acquire(const core& self) noexcept;
/// Counts an acquire that has ended without a lock, and reports it to the observer.
/// \param error the error of the acquire, or `code_of_destroyed_acquire`
void report_not_granted(core& self, const lock_record::ptr& record, const error_code& error) noexcept;

// Errors of queries and changes of a lock.
enum class effect : unsigned char
{
    none,
    writes,
};
/// Returns why an operation was not answered in time.
[[nodiscard]] failure_ptr unanswered(const core& self);
/// Throws the error of an operation without an answer. A query changes nothing, so its outcome is never unknown.
/// \param failure null: there was no answer in time
[[noreturn]] void throw_unanswered(const core& self, const failure_ptr& failure, effect kind, error_context context);

} // namespace colock::inline v0::detail
