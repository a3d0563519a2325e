// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/core.hpp"

#include <algorithm>

namespace colock::detail {

using std::chrono::milliseconds;

lease_request core::request_of(const record& held, milliseconds ttl) noexcept
{
    // What may arrive late counts as if it had been the last.
    return {held.sent(), std::min(ttl, held.late_ttl())};
}

void core::hold(record& wanted, std::uint64_t fence)
{
    wanted.fence = fence;
    wanted.granted = true;
    wanted.lease().set_ttl_bound(wanted.plan.granted(request_of(wanted, wanted.ttl())));
    wanted.move_to(phase::held);
    held_.push_back(wanted);
    if (wanted.lease().session())
        watch_session(wanted);

    ++stats_.grants;
    if (wanted.attempting.has_waited()) {
        --stats_.waiting;
        const auto waited = lease_clock::now() - wanted.started;
        stats_.waited_total += waited;
        stats_.waited_longest = std::max(stats_.waited_longest, std::chrono::nanoseconds(waited));
    }
    if (wanted.plan.renews() || watches_all_ || wanted.due != time_point::max() || wanted.plan.is_bounded())
        reschedule_held(wanted);
}

void core::grant(record& wanted, std::uint64_t fence, work& todo)
{
    key_queue* queue = wanted.queue;
    if (queues_.leave(wanted, todo.wakes)) {
        queue->answer = {.heard = true};
        if (wanted.mode() == lock_mode::exclusive)
            queue->holder = &wanted;
    }
    hold(wanted, fence);
    wanted.notify(todo.wakes);
    if (options_.observer)
        todo.tell({.what = work::note::granted, .subject = &wanted, .span = lease_clock::now() - wanted.started});
}

void core::reschedule_held(record& held)
{
    const auto due = held.plan.due(held.lease().valid_until(), margins_, watches_all_);
    timers_.schedule(held, std::min(due, held.answer_by));
}

/// False if it has ended.
bool core::follow_plan(record& held, time_point now, work& todo)
{
    for (;;) {
        const auto stands_until = held.lease().has_ended(now) ? time_point::min() : held.lease().valid_until();
        const auto next = held.plan.next(now, stands_until, margins_, watches_all_);
        switch (next.what) {
        case lease_plan::action::lose:
            begin_end(held, end_of(held, now), todo);
            return false;
        case lease_plan::action::stop_body:
            stop_body(held, lost_reason::expired, todo);
            break;
        case lease_plan::action::renew:
            start_renewal(held, now, todo);
            break;
        case lease_plan::action::wait:
            return true;
        }
    }
}

void core::stop_body(record& held, lost_reason why, work& todo)
{
    if (held.plan.stops_body(why))
        held.notify(todo.wakes);
}

void core::start_renewal(record& held, time_point now, work& todo)
{
    held.plan.renewing();
    // Whatever is under way schedules the next renewal when it ends.
    if (held.under_way != operation::none)
        return;
    const auto ttl = held.plan.renewal_ttl(now, held.ttl(), limits_.min_ttl);
    if (!ttl)
        return;
    held.under_way = operation::extend;
    held.extend_ttl = *ttl;
    held.extend_result.reset();
    held.set_sent(now);
    settler::may_stand(held, *ttl);
    todo.ask(work::action::renew, held);
}

void core::on_extended(const record_ptr& held, extend_outcome outcome)
{
    if (outcome.status == extend_status::failed)
        must_be_said(outcome.error);
    work todo;
    {
        const std::lock_guard guard(mutex_);
        record& subject = *held;
        subject.under_way = operation::none;
        subject.answer_by = time_point::max();
        const auto result = std::move(subject.extend_result);
        if (outcome.status == extend_status::failed && outcome.error->code == errc::outcome_unknown)
            subject.may_arrive_late(subject.extend_ttl);
        if (subject.where() == phase::ended)
            return;
        if (subject.where() == phase::ending) {
            settler_.give_back(subject, todo);
        } else if (outcome.status == extend_status::extended && !subject.lease().has_ended(lease_clock::now())) {
            if (result)
                subject.set_ttl(subject.extend_ttl);
            else
                ++stats_.renewals;
            subject.lease().set_ttl_bound(subject.plan.extended(
                request_of(subject, subject.extend_ttl), std::min(subject.ttl(), subject.late_ttl())));
            if (!result && options_.observer) {
                todo.tell({.what = work::note::renewed,
                    .subject = held,
                    .span = subject.lease().valid_until() - lease_clock::now()});
            }
        } else if (outcome.status != extend_status::failed) {
            // An answer that came after the deadline cannot bring back what was not held for a while.
            begin_end(subject, end_of(subject, lease_clock::now()), todo);
        } else if (subject.plan.renews()) {
            if (!result)
                ++stats_.renewal_errors;
            subject.plan.failed(lease_clock::now());
            if (options_.observer)
                todo.tell({.what = work::note::at_risk, .subject = held, .why = outcome.error->code});
        }
        if (result)
            result->emplace(std::move(outcome));
        if (subject.where() == phase::held)
            reschedule_held(subject);
        subject.notify(todo.wakes);
    }
    todo.run(*this);
}

void core::begin_end(record& held, lost_reason reason, work& todo)
{
    held_.erase(held_.iterator_to(held));
    held.end_reason = reason;
    held.move_to(phase::ending);
    held.plan.renewing();
    settler::may_stand(held, held.ttl());
    settler_.enter(held);
    if (key_queue* queue = queues_.find(held); queue && queue->holder == &held)
        queue->holder = nullptr;
    if (reason != lost_reason::released) {
        held.settles = true;
        queues_.wake_heads(held, todo.wakes);
        ++stats_.losses[static_cast<std::size_t>(reason)];
        if (options_.observer)
            todo.tell({.what = work::note::lost, .subject = &held, .reason = reason});
    }
    timers_.schedule(held, held.answer_by);
    held.notify(todo.wakes);
    settler_.give_back(held, todo);
}

void core::declare_lost(const record_ptr& held, lost_reason reason)
{
    work todo;
    {
        const std::lock_guard guard(mutex_);
        if (held->where() != phase::held)
            return;
        begin_end(*held, reason, todo);
    }
    todo.run(*this);
}

void core::on_risk(const record_ptr& held)
{
    work todo;
    {
        const std::lock_guard guard(mutex_);
        if (held->where() != phase::held)
            return;
        at_risk(*held, lease_clock::now(), todo);
    }
    todo.run(*this);
}

void core::at_risk(record& held, time_point now, work& todo)
{
    if (options_.observer)
        todo.tell({.what = work::note::at_risk, .subject = &held, .why = errc::unavailable});
    // The sooner it is known whether the lease still stands, the better.
    if (held.plan.renews())
        start_renewal(held, now, todo);
}

void core::watch_session(record& held)
{
    const auto& session = held.lease().session();
    if (session_.lock() == session)
        return;
    session_ = session;
    session->watch(shared_from_this());
    // It may have ended just before.
    if (session->valid_until() == time_point::min())
        timers_.schedule(held, lease_clock::now());
}

void core::on_session_at_risk(const session_bound& session) noexcept
{
    work todo;
    {
        const std::lock_guard guard(mutex_);
        const auto now = lease_clock::now();
        for (record& held : held_) {
            if (held.lease().session().get() == &session)
                at_risk(held, now, todo);
        }
    }
    todo.run(*this);
}

/// They are due now, and so told in parts, as others are whose time has come.
void core::on_session_ended(const session_bound& session) noexcept
{
    const std::lock_guard guard(mutex_);
    const auto now = lease_clock::now();
    for (record& held : held_) {
        if (held.lease().session().get() == &session)
            timers_.schedule(held, now);
    }
}

/// Why a lease that is no more has ended.
lost_reason core::end_of(const record& held, time_point now) noexcept
{
    const auto& session = held.lease().session();
    if (session && session->has_ended(now))
        return lost_reason::session;
    return held.lease().has_ended(now) ? lost_reason::expired : lost_reason::taken;
}

std::optional<lost_reason> core::body_begins(record& held)
{
    work todo;
    std::optional<lost_reason> lost;
    {
        const std::lock_guard guard(mutex_);
        lost = loss_of(held, todo);
        if (held.where() == phase::held) {
            held.plan.body_begins();
            reschedule_held(held);
        }
    }
    todo.run(*this);
    return lost;
}

std::optional<lost_reason> core::body_ends(record& held)
{
    work todo;
    std::optional<lost_reason> lost;
    {
        const std::lock_guard guard(mutex_);
        held.plan.body_ends();
        lost = loss_of(held, todo);
    }
    todo.run(*this);
    return lost == lost_reason::released ? std::nullopt : lost;
}

/// What is told to the caller as a loss is one for everybody: it is counted, and the observer hears of it.
std::optional<lost_reason> core::loss_of(record& held, work& todo)
{
    if (held.where() != phase::held)
        return held.end_reason;
    // The timer may be late, if the body kept its thread busy.
    if (held.plan.body_stops())
        begin_end(held, held.plan.stop_reason(), todo);
    else if (const auto now = lease_clock::now(); held.lease().has_ended(now))
        begin_end(held, end_of(held, now), todo);
    return held.end_reason;
}

} // namespace colock::detail
