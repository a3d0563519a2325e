// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/core.hpp"

namespace colock::detail {

void core::let_go(record& held) noexcept
{
    if (held.where() == phase::held && !release_at_once(record_ptr(&held)))
        begin_release(held);
    if (held.where() != phase::ending)
        return;
    const std::lock_guard guard(mutex_);
    settler_.keep_until_ended(held);
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
                    settler::may_stand(subject, subject.ttl());
                    subject.move_to(phase::ending);
                    settler_.enter(subject);
                    settler_.give_back(subject, todo);
                }
            }
        }
        todo.run(*this);
    }
    let_go(subject);
}

void core::on_given_back(record& subject, release_outcome&& outcome)
{
    if (outcome.status == release_status::failed)
        must_be_said(outcome.error);
    work todo;
    {
        const std::lock_guard guard(mutex_);
        settler_.on_given_back(subject, std::move(outcome), todo);
    }
    todo.run(*this);
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

} // namespace colock::detail
