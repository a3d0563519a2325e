// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/operation_errors.hpp"

#include "core/policy/default_owner.hpp"
#include "core/state/core.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <utility>

namespace colock::inline v0::detail {

using namespace std::chrono_literals;

namespace {

/// Returns zero if the acquire was rejected before it started.
std::chrono::nanoseconds elapsed_since(lease_clock::time_point started)
{
    return started == lease_clock::time_point{} ? 0ns : lease_clock::now() - started;
}

} // namespace

error_context context_of(const core& self, const lock_record& record)
{
    return {.key = record.key(),
        .backend = self.backend_name(),
        .attempts = record.attempts_made,
        .elapsed = elapsed_since(record.started)};
}

error_context context_of_held(
    const core& self, const lock_record& record, lease_clock::time_point began, std::size_t attempts)
{
    return {.key = record.key(), .backend = self.backend_name(), .attempts = attempts, .elapsed = elapsed_since(began)};
}

void throw_failed(const failure& failure, error_context context)
{
    context.cause = failure.cause;
    context.detail = failure.detail;
    throw create_error(failure.code, std::move(context));
}

void throw_shutting_down(const core& self, const lock_record& record)
{
    throw create_error(errc::shutting_down, context_of(self, record));
}

void throw_invalid(const core& self, const lock_record& record)
{
    auto context = context_of(self, record);
    context.detail = record.acquire_state().input_failure->detail;
    throw validation_error(record.acquire_state().input_failure->code, std::move(context));
}

std::string lease_end_text(lost_reason reason)
{
    if (reason == lost_reason::shutting_down)
        return "its lease ended with the shutdown of the locker; make another locker to go on";
    return std::string("its lease had ended: ") + to_string(reason);
}

failure_ptr make_late_grant_failure()
{
    return make_failure(
        errc::unavailable, "the grant arrived when too little of its ttl was left; use a longer ttl, or a faster link");
}

namespace {

void set_holder(last_answer& answer, const lock_record& holder)
{
    answer.is_held_here = true;
    answer.holder = holder.owner().owner;
    answer.holder_host = holder.owner().host;
    answer.holder_expires = holder.lease().valid_until();
}

std::string holder_text(const last_answer& last)
{
    auto text = "held by " + last.holder;
    if (!last.holder_host.empty())
        text += " on " + last.holder_host;
    if (last.is_held_here || is_this_process(last.holder, last.holder_host))
        text += " (this process)";
    return text;
}

} // namespace

last_answer last_answer_for(const core& self, const lock_record& record, lease_clock::time_point now)
{
    const bool is_in_flight = record.in_flight != operation::none;
    const auto& acquire = record.acquire_state();
    if (!is_in_flight && record.attempts_made == 0)
        return answer_to_heads(self, *acquire.queue, now);
    auto known = last_answer::from(acquire.outcome, acquire.plan.holder_expires());
    known.is_answered =
        record.attempts_made > 0 && !(is_in_flight && self.answers.is_overdue(record.operation_start(), now));
    known.is_in_flight = is_in_flight;
    // Some backends do not name the holder.
    if (acquire.queue && acquire.queue->holder)
        set_holder(known, *acquire.queue->holder);
    return known;
}

last_answer answer_to_heads(const core& self, const key_queue& queue, lease_clock::time_point now)
{
    if (queue.holder) {
        last_answer answer{.is_answered = true};
        set_holder(answer, *queue.holder);
        return answer;
    }
    last_answer known = queue.answer;
    const lock_record& first = queue.members.front();
    known.waits_behind_local_caller =
        first.in_flight == operation::none || !self.answers.is_overdue(first.operation_start(), now);
    known.is_answered = known.is_answered && known.waits_behind_local_caller;
    return known;
}

failure_ptr failure_unless_busy(const core& self, const last_answer& last, const char* silence)
{
    if (last.is_answered)
        return last.error;
    if (auto connection_failure = self.backend->connection_failure())
        return connection_failure;
    if (last.error || last.waits_behind_local_caller)
        return last.error;
    return make_failure(last.is_in_flight ? errc::outcome_unknown : errc::unavailable, silence);
}

void throw_retries_ended(const core& self, const lock_record& record, retry_schedule& schedule, const last_answer& last)
{
    auto context = context_of(self, record);
    context.attempts += schedule.earlier_requests() + (last.is_in_flight ? 1 : 0);
    context.counted_attempts = schedule.attempts();
    if (const auto failure =
            failure_unless_busy(self, last, "the backend had not answered when the retry policy ended"))
        throw_failed(*failure, std::move(context));
    if (!last.holder.empty())
        context.detail = holder_text(last);
    else if (last.waits_behind_local_caller)
        context.detail = "another caller of this locker is first";
    context.holder = last.holder;
    if (last.holder_expires != lease_clock::time_point::max())
        context.retry_after = std::max<lease_clock::duration>(last.holder_expires - lease_clock::now(), 0ns);
    schedule.end_busy();
    throw retry_error(errc::retry_exhausted, std::move(context));
}

namespace {

std::uint64_t& counter_of(locker_stats& stats, const error_code& error) noexcept
{
    if (error == errc::retry_exhausted)
        return stats.exhausted;
    if (error == asio::error::operation_aborted)
        return stats.cancelled;
    return error == errc::shutting_down ? stats.shut_down : stats.failed;
}

} // namespace

error_code code_of_destroyed_acquire(const core& self) noexcept
{
    return self.dead ? error_code(errc::shutting_down) : error_code(asio::error::operation_aborted);
}

void report_not_granted(core& self, const lock_record::ptr& record, const error_code& error) noexcept
{
    self.update([&](deferred_actions&) {
        ++counter_of(self.stats, error);
        if (self.options.observer)
            self.events.add({.type = lock_event::kind::not_granted,
                .record = record,
                .span = elapsed_since(record->started),
                .error = error});
    });
}

failure_ptr unanswered(const core& self)
{
    if (self.is_backend_gone())
        return make_failure(errc::shutting_down, "the locker's execution context is gone");
    const auto connection_failure = self.backend->connection_failure();
    return connection_failure
               ? connection_failure
               : make_failure(errc::outcome_unknown, "no answer within the operation timeout", asio::error::timed_out);
}

void throw_unanswered(const core& self, const failure_ptr& failure, effect kind, error_context context)
{
    const auto reason = failure ? failure : unanswered(self);
    context.attempts = 1;
    context.cause = reason->cause;
    context.detail = reason->detail;
    // A query changes nothing, so its outcome is not unknown.
    const bool keeps_code = kind == effect::writes || reason->code != errc::outcome_unknown;
    throw error(keeps_code ? reason->code : make_error_code(errc::unavailable), std::move(context));
}

} // namespace colock::inline v0::detail
