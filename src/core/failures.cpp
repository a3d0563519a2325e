// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/failures.hpp"

#include "core/core.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <utility>

namespace colock::detail {

using namespace std::chrono_literals;

error_context context_of(const core& self, const record& wanted)
{
    return {.key = wanted.key(),
        .backend = self.backend_name(),
        .attempts = wanted.attempts_made,
        .elapsed = wanted.started == lease_clock::time_point{} ? 0ns : lease_clock::now() - wanted.started};
}

void throw_failed(const failure& why, error_context context)
{
    context.cause = why.cause;
    context.detail = why.detail;
    throw create_error(why.code, std::move(context));
}

void throw_shutting_down(const core& self, const record& wanted)
{
    throw create_error(errc::shutting_down, context_of(self, wanted));
}

void throw_inherited(const core& self, const record& wanted)
{
    throw create_error(errc::forked, context_of(self, wanted));
}

void throw_refused(const core& self, const record& wanted)
{
    auto context = context_of(self, wanted);
    context.detail = wanted.refused->detail;
    throw validation_error(wanted.refused->code, std::move(context));
}

failure_ptr too_late_to_use()
{
    return make_failure(
        errc::unavailable, "the grant arrived when too little of its ttl was left; use a longer ttl, or a faster link");
}

last_answer answer_to(const record& wanted, lease_clock::time_point now)
{
    if (wanted.under_way != operation::none) {
        return {.heard = wanted.attempts_made > 0 && !wanted.attempting.is_overdue(wanted.sent(), now),
            .sent = true,
            .error = wanted.outcome().error,
            .holder = wanted.outcome().holder};
    }
    if (wanted.attempts_made > 0)
        return {.heard = true, .error = wanted.outcome().error, .holder = wanted.outcome().holder};
    // Whoever is not the head has asked nobody, and knows what the head knows.
    return wanted.place.queue->holder ? last_answer{.heard = true} : wanted.place.queue->answer;
}

void throw_retries_ended(
    const core& self, const record& wanted, const retry_schedule& schedule, const last_answer& last)
{
    auto context = context_of(self, wanted);
    context.attempts = std::max<std::size_t>(context.attempts + (last.sent ? 1 : 0), schedule.attempts());
    if (!last.heard) {
        if (const auto trouble = self.backend->trouble())
            throw_failed(*trouble, std::move(context));
        if (!last.error) {
            context.detail = "the backend had not answered when the retry policy ended";
            throw create_error(last.sent ? errc::outcome_unknown : errc::unavailable, std::move(context));
        }
    }
    if (last.error)
        throw_failed(*last.error, std::move(context));
    if (!last.holder.empty())
        context.detail = "held by " + last.holder;
    throw retry_error(errc::retry_exhausted, std::move(context));
}

failure_ptr unanswered(const core& self)
{
    if (self.is_deaf())
        return make_failure(errc::shutting_down, "the locker's execution context is gone");
    const auto trouble = self.backend->trouble();
    return trouble
               ? trouble
               : make_failure(errc::outcome_unknown, "no answer within the operation timeout", asio::error::timed_out);
}

void throw_unanswered(const core& self, const failure_ptr& why, effect what, error_context context)
{
    const auto known = why ? why : unanswered(self);
    context.attempts = 1;
    context.cause = known->cause;
    context.detail = known->detail;
    const bool in_doubt = what == effect::writes || known->code != errc::outcome_unknown;
    throw error(in_doubt ? known->code : make_error_code(errc::unavailable), std::move(context));
}

} // namespace colock::detail
