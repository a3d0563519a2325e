// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// What the adapter tells.
#include "core/core.hpp"

namespace colock::detail {

void core::on_woken(const record_ptr& waiting, std::uint32_t wait_number)
{
    work todo;
    {
        const std::lock_guard guard(mutex_);
        if (waiting->where() != phase::acquiring || !waiting->attempting.woken(wait_number))
            return;
        waiting->notify(todo.wakes);
    }
    todo.run(*this);
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

void core::on_extended(const record_ptr& held, extend_outcome outcome)
{
    if (outcome.status == extend_status::failed)
        must_be_said(outcome.error);
    work todo;
    {
        const std::lock_guard guard(mutex_);
        leases_.on_extended(*held, std::move(outcome), todo);
    }
    todo.run(*this);
}

void core::declare_lost(const record_ptr& held, lost_reason reason)
{
    work todo;
    {
        const std::lock_guard guard(mutex_);
        if (held->where() != phase::held)
            return;
        leases_.begin_end(*held, reason, todo);
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
        leases_.at_risk(*held, todo);
    }
    todo.run(*this);
}

void core::on_session_at_risk(const session_bound& session) noexcept
{
    work todo;
    {
        const std::lock_guard guard(mutex_);
        leases_.session_at_risk(session, todo);
    }
    todo.run(*this);
}

void core::on_session_ended(const session_bound& session) noexcept
{
    const std::lock_guard guard(mutex_);
    leases_.session_ended(session);
}

} // namespace colock::detail
