// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/work.hpp"

#include <algorithm>

namespace colock::detail {

using namespace std::chrono_literals;

namespace {

constexpr decltype(record::backoff) backoff_first{50};
constexpr decltype(record::backoff) backoff_cap{2000};

} // namespace

void core::enter_ending(record& ending)
{
    intrusive_ptr_add_ref(&ending);
    ending_.push_back(ending);
    ++stats_.settling;
}

void core::give_back(record& ending, work& todo)
{
    if (dead_ && !can_.immediate)
        return end(ending, false, todo);
    // Its end comes back here: nothing may overtake a create or an extend that is under way.
    if (ending.under_way != operation::none)
        return;
    record_ptr next = !dead_ && !ending.settles && ending.granted ? queues_.next_for_hand_over(ending) : record_ptr{};
    const auto now = lease_clock::now();
    ending.under_way = operation::give_back;
    ending.set_sent(now);
    if (next) {
        next->under_way = operation::create;
        next->open_to_hand_over = false;
        next->set_sent(now);
        if (next->attempting.sent(false))
            todo.ask(work::action::cancel_wait, *next);
        todo.ask(work::action::hand_over, ending, std::move(next));
    } else {
        todo.ask(ending.granted && !ending.tainted() ? work::action::release : work::action::abandon, ending);
    }
}

void core::on_handed_over(record& ending, record& next, hand_over_outcome&& outcome)
{
    if (outcome.released.status == release_status::failed) {
        must_be_said(outcome.released.error);
        if (outcome.released.error->code == errc::outcome_unknown)
            ending.taint();
    }
    on_created(next, std::move(outcome.created));
    on_given_back(ending, std::move(outcome.released));
}

void core::on_given_back(record& subject, release_outcome&& outcome)
{
    if (outcome.status == release_status::failed)
        must_be_said(outcome.error);
    work todo;
    {
        const std::lock_guard guard(mutex_);
        subject.under_way = operation::none;
        if (outcome.others_wait && !can_.fifo) {
            if (key_queue* queue = queues_.find(subject)) {
                const auto now = lease_clock::now();
                queue->stands_back_until =
                    now + std::clamp<lease_clock::duration>(2 * (now - subject.sent()), 500us, 20ms);
            }
        }
        const bool late_grant = std::exchange(subject.gives_back_late_grant, false);
        if (subject.where() == phase::acquiring) {
            // Its acquire goes on, with another token if this release may still arrive.
            if (outcome.status == release_status::failed && outcome.error->code == errc::outcome_unknown)
                subject.spend();
            subject.notify(todo.wakes);
        } else if (subject.where() == phase::ending && late_grant) {
            // That was a plain release, and its acquire was given up meanwhile: there may be more to take back.
            give_back(subject, todo);
        } else if (subject.where() == phase::ending) {
            const bool failed = outcome.status == release_status::failed;
            if (!std::exchange(subject.answered, true))
                subject.answer = std::move(outcome);
            if (failed)
                retry_later(subject, todo);
            else
                end(subject, true, todo);
        }
    }
    todo.run(*this);
}

void core::retry_later(record& ending, work& todo)
{
    ending.settles = true;
    const auto now = lease_clock::now();
    const time_point unproven_after = this->unproven_after(ending);
    if (dead_ || now >= unproven_after)
        return end(ending, false, todo);
    // It may not have been carried out, or it may: whoever waits behind it has to look for itself.
    if (ending.granted)
        queues_.wake_heads(ending, todo.wakes);
    // Whoever waited for the first answer may leave now; the clean-up keeps the core.
    if (!self_)
        self_ = shared_from_this();
    ending.backoff = std::clamp<decltype(ending.backoff)>(ending.backoff * 2U, backoff_first, backoff_cap);
    ending.retry_at = std::min(saturating_add(now, ending.backoff), unproven_after);
    timers_.schedule(ending, std::min(ending.retry_at, ending.answer_by));
    ending.notify(todo.wakes);
}

void core::end(record& ending, bool proven, work& todo)
{
    timers_.schedule(ending, time_point::max());
    ending_.erase(ending_.iterator_to(ending));
    todo.ended.emplace_back(&ending, false);
    --stats_.settling;
    if (ending.settles) {
        ++stats_.settled;
        if (!proven)
            ++stats_.unproven;
    } else {
        ++stats_.releases;
    }
    if (options_.observer) {
        todo.tell({.what = ending.settles ? work::note::settled : work::note::released,
            .subject = &ending,
            .proven = proven});
    }
    ending.move_to(phase::ended);
    ending.notify(todo.wakes);
    if (ending.granted)
        queues_.wake_heads(ending, todo.wakes);
    if (ending_.empty()) {
        todo.keep = std::move(self_);
        drained_.notify(todo.wakes);
    }
}

void core::keep_until_ended(record& ending)
{
    const std::lock_guard guard(mutex_);
    // One that is released at once is in no list: whoever asks the backend keeps the core.
    if (ending.where() == phase::ending && ending.list_hook::is_linked() && !self_)
        self_ = shared_from_this();
}

void core::let_go(record& held) noexcept
{
    if (held.where() == phase::held && !release_at_once(record_ptr(&held)))
        begin_release(held);
    if (held.where() == phase::ending)
        keep_until_ended(held);
}

void core::depart(const record_ptr& wanted) noexcept
{
    record& subject = *wanted;
    subject.cancel();
    {
        work todo;
        {
            const std::lock_guard guard(mutex_);
            queues_.leave(subject, todo.wakes);
            if (subject.where() == phase::acquiring) {
                stop_trying(subject);
                if (subject.attempting.stops_waiting())
                    --stats_.waiting;
                if (subject.attempting.stops_listening())
                    todo.ask(work::action::cancel_wait, subject);
                timers_.schedule(subject, time_point::max());
                if ((subject.under_way == operation::none && !subject.left_trace) || subject.inherited()) {
                    subject.move_to(phase::ended);
                } else {
                    subject.settles = true;
                    may_stand(subject, subject.ttl());
                    subject.move_to(phase::ending);
                    enter_ending(subject);
                    give_back(subject, todo);
                }
            }
        }
        todo.run(*this);
    }
    let_go(subject);
}

} // namespace colock::detail
