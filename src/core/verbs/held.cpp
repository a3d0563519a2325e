// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/core.hpp"
#include "core/validation.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>

namespace colock::detail {

namespace {

/// A release whose caller leaves early goes on without it.
struct leaves_rest_to_core
{
    core& self;
    record& ending;
    ~leaves_rest_to_core() { self.let_go(ending); }
};

} // namespace

asio::awaitable<void> core::release(std::shared_ptr<core> self, record_ptr held, on_failure report)
{
    if (report == on_failure::quiet && self->release_at_once(held))
        co_return;
    const bool was_held = held->where() == phase::held;
    std::uint32_t seen = 0;
    bool waits = was_held && self->begin_release(*held, &seen);
    if (held->where() == phase::ending) {
        const leaves_rest_to_core rest{*self, *held};
        parked place;
        for (; waits; waits = self->await_answer(*held, seen))
            co_await self->park(*held, place, seen);
    }
    if (report == on_failure::raise)
        self->raise_failed_release(*held, was_held);
}

asio::awaitable<void> core::release_uncancelled(std::shared_ptr<core> self, record_ptr held)
{
    parked place;
    place.deaf = true;
    std::uint32_t seen = 0;
    for (bool waits = self->begin_release(*held, &seen); waits; waits = self->await_answer(*held, seen))
        co_await self->park(*held, place, seen);
}

bool core::await_answer(record& ending, std::uint32_t& seen)
{
    if (ending.where() == phase::ended)
        return false;
    const std::lock_guard guard(mutex_);
    return is_unanswered(ending, seen);
}

bool core::is_unanswered(record& ending, std::uint32_t& seen)
{
    ending.watch_end();
    if (ending.where() == phase::ended || ending.answered)
        return false;
    seen = ending.version;
    const bool first_look = ending.answer_deadline == time_point::max();
    const bool just_sent = ending.under_way == operation::give_back && ending.retry_at == time_point::max();
    if (first_look && just_sent && adapter_keeps_time())
        return true;
    const auto now = lease_clock::now();
    if (first_look)
        ending.answer_deadline = saturating_add(now, options_.operation_timeout);
    if (now >= ending.answer_deadline)
        return false;
    ending.answer_by = std::min(ending.answer_by, ending.answer_deadline);
    timers_.schedule(ending, std::min(ending.retry_at, ending.answer_by));
    return true;
}

void core::raise_failed_release(record& ended, bool was_held)
{
    error_code code;
    failure_ptr why;
    bool silent = false;
    auto context = context_of(ended);
    {
        const std::lock_guard guard(mutex_);
        const bool lost = ended.end_reason && *ended.end_reason != lost_reason::released;
        if (!was_held) {
            // A second release, or one of a lock whose loss was reported already.
            if (!lost || std::exchange(ended.loss_reported, true))
                return;
            code = errc::not_held;
            context.detail = std::string("the lease had ended: ") + to_string(*ended.end_reason);
        } else if (!ended.answered) {
            silent = true;
        } else if (ended.answer.status == release_status::failed) {
            why = ended.answer.error;
        } else if (ended.answer.status == release_status::not_held) {
            code = errc::not_held;
            context.detail = "the backend no longer knew it as ours";
        }
    }
    if (silent)
        why = unanswered();
    if (why) {
        code = why->code;
        context.cause = why->cause;
        context.detail = why->detail;
    }
    if (code)
        throw release_error(code, std::move(context));
}

asio::awaitable<void> core::extend(std::shared_ptr<core> self, record_ptr held, std::chrono::milliseconds ttl)
{
    self->check_extend(*held, ttl);
    if (self->is_deaf())
        throw extend_error(errc::shutting_down, self->context_of(*held));
    parked place;
    std::uint32_t seen = 0;
    const auto result = std::make_shared<std::optional<extend_outcome>>();
    // A renewal may be under way, or another extend.
    while (!self->begin_extend(held, ttl, result, seen))
        co_await self->park(*held, place, seen);
    const auto until = self->answer_deadline(lease_clock::now());
    while (self->await_result(*held, *result, until, seen))
        co_await self->park(*held, place, seen);
    self->report_extended(*held, *result);
}

void core::check_extend(const record& held, std::chrono::milliseconds ttl) const
{
    using namespace std::chrono_literals;
    auto context = context_of(held);
    if (held.ttl() == 0ms) {
        context.detail = "the lock has no ttl, there is nothing to extend; acquire it with one";
        throw validation_error(errc::invalid_ttl, std::move(context));
    }
    if (ttl == 0ms) {
        context.detail = "the ttl is 0 ms; a lock with a ttl cannot be made one without, give a positive one";
        throw validation_error(errc::invalid_ttl, std::move(context));
    }
    if (const auto refused = check_ttl(ttl, limits_, can_)) {
        context.detail = refused->detail;
        throw validation_error(refused->code, std::move(context));
    }
}

bool core::begin_extend(const record_ptr& held, std::chrono::milliseconds ttl,
    const std::shared_ptr<std::optional<extend_outcome>>& result, std::uint32_t& seen)
{
    record& subject = *held;
    const auto not_held = [&](lost_reason reason) {
        auto context = context_of(subject);
        context.detail = std::string("its lease had ended: ") + to_string(reason);
        throw extend_error(errc::not_held, std::move(context));
    };
    work todo;
    {
        std::unique_lock guard(mutex_);
        if (subject.where() != phase::held) {
            const auto reason = subject.end_reason.value_or(lost_reason::released);
            guard.unlock();
            not_held(reason);
        }
        const auto now = lease_clock::now();
        if (subject.lease().has_ended(now)) {
            guard.unlock();
            const auto reason = leases::end_of(subject, now);
            declare_lost(held, reason);
            not_held(reason);
        }
        seen = subject.version;
        if (subject.under_way != operation::none)
            return false;
        subject.set_sent(now);
        leases_.expect(subject, ttl, todo);
        subject.under_way = operation::extend;
        subject.extend_ttl = ttl;
        subject.extend_result = result;
        leases_.reschedule(subject);
    }
    todo.run(*this);
    backend_->start_extend(held, ttl, completion<extend_outcome>::bind<&record::on_extended>(held));
    return true;
}

template <class Outcome>
bool core::await_result(record& held, const std::optional<Outcome>& result, time_point until, std::uint32_t& seen)
{
    const std::lock_guard guard(mutex_);
    if (result || held.where() == phase::ended || lease_clock::now() >= until)
        return false;
    held.answer_by = std::min(held.answer_by, until);
    if (held.where() == phase::held)
        leases_.reschedule(held);
    else
        timers_.schedule(held, std::min(held.retry_at, held.answer_by));
    seen = held.version;
    return true;
}

void core::report_extended(const record& held, const std::optional<extend_outcome>& result)
{
    auto context = context_of(held);
    error_code code;
    failure_ptr why;
    {
        const std::lock_guard guard(mutex_);
        if (result && result->status == extend_status::extended && held.where() == phase::held)
            return;
        if (result && result->status == extend_status::failed) {
            why = result->error;
        } else if (result) {
            code = errc::not_held;
            if (held.end_reason)
                context.detail = std::string("its lease had ended: ") + to_string(*held.end_reason);
        }
    }
    if (!code) {
        why = why ? why : unanswered();
        code = why->code;
        context.cause = why->cause;
        context.detail = why->detail;
    }
    throw extend_error(code, std::move(context));
}

asio::awaitable<bool> core::is_valid(std::shared_ptr<core> self, record_ptr held)
{
    if (self->is_deaf())
        throw error(errc::shutting_down, self->context_of(*held));
    const auto result = std::make_shared<std::optional<valid_outcome>>();
    parked place;
    std::uint32_t seen = 0;
    for (;;) {
        const auto begun = self->begin_is_valid(held, result, seen);
        if (begun == query_start::ended)
            co_return false;
        if (begun == query_start::started)
            break;
        co_await self->park(*held, place, seen);
    }
    const auto until = self->answer_deadline(lease_clock::now());
    while (self->await_result(*held, *result, until, seen))
        co_await self->park(*held, place, seen);
    std::optional<valid_outcome> answer;
    bool still_held = false;
    {
        const std::lock_guard guard(self->mutex_);
        answer = *result;
        still_held = held->where() == phase::held;
    }
    if (!answer || answer->error)
        self->throw_unanswered(answer ? answer->error : nullptr, effect::none, self->context_of(*held));
    co_return still_held && answer->valid;
}

core::query_start core::begin_is_valid(
    const record_ptr& held, const std::shared_ptr<std::optional<valid_outcome>>& result, std::uint32_t& seen)
{
    {
        const std::lock_guard guard(mutex_);
        if (held->where() != phase::held)
            return query_start::ended;
        seen = held->version;
        if (held->under_way != operation::none)
            return query_start::busy;
        held->under_way = operation::query;
        held->set_sent(lease_clock::now());
    }
    backend_->start_is_valid(held, [held, result](valid_outcome outcome) {
        if (const pinned_core alive{*held})
            alive->on_checked(held, *result, std::move(outcome));
    });
    return query_start::started;
}

void core::on_checked(const record_ptr& held, std::optional<valid_outcome>& result, valid_outcome outcome)
{
    work todo;
    {
        const std::lock_guard guard(mutex_);
        held->under_way = operation::none;
        held->answer_by = time_point::max();
        if (held->where() == phase::ended)
            return;
        if (held->where() == phase::ending) {
            settler_.give_back(*held, todo);
        } else if (!outcome.error && !outcome.valid) {
            leases_.begin_end(*held, leases::end_of(*held, lease_clock::now()), todo);
        } else {
            // A renewal that fell due meanwhile gave way to the question.
            held->plan.catches_up(lease_clock::now());
            leases_.reschedule(*held);
        }
        result = std::move(outcome);
        held->notify(todo.wakes);
    }
    todo.run(*this);
}

asio::awaitable<void> core::supervise(std::shared_ptr<core> self, record_ptr held)
{
    // Cancelled as soon as the body ends, which is the rule: exceptions for that would cost more than all else.
    co_await asio::this_coro::throw_if_cancelled(false);
    // The group that it runs in emits one cancellation only: whatever its type, it must not be missed.
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    parked place;
    while ((co_await asio::this_coro::cancellation_state).cancelled() == asio::cancellation_type::none) {
        std::uint32_t seen = 0;
        {
            const std::lock_guard guard(self->mutex_);
            if (held->plan.body_stops() || (held->end_reason && *held->end_reason != lost_reason::released))
                co_return;
            seen = held->version;
        }
        co_await self->park(*held, place, seen, asio::as_tuple(asio::deferred));
    }
}

namespace {

/// Counts a coroutine that waits for the loss, so that a timer watches the lease.
template <class Leave>
struct listening
{
    Leave leave;
    ~listening() { leave(); }
};
template <class Leave>
listening(Leave) -> listening<Leave>;

} // namespace

asio::awaitable<lost_reason> core::lost(std::shared_ptr<core> self, record_ptr held)
{
    const auto count = [&self, &held](bool enter) {
        const std::lock_guard guard(self->mutex_);
        if (enter)
            held->plan.listener_enters();
        else
            held->plan.listener_leaves();
        if (held->where() == phase::held)
            self->leases_.reschedule(*held);
    };
    count(true);
    const listening leave{[&count] { count(false); }};
    parked place;
    for (;;) {
        std::uint32_t seen = 0;
        {
            const std::lock_guard guard(self->mutex_);
            if (held->end_reason)
                co_return *held->end_reason;
            // Without its context there is no timer that could tell.
            if (self->dead_)
                co_return lost_reason::shutting_down;
            seen = held->version;
        }
        // One that came between two awaits is only recorded, and this wait may be a long one.
        if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
            throw boost::system::system_error(asio::error::operation_aborted);
        co_await self->park(*held, place, seen);
    }
}

} // namespace colock::detail
