// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/lock_record.hpp"

#include "core/state/core.hpp"
#include "util/spare_blocks.hpp"

#include <cstddef>
#include <new>
#include <utility>

namespace colock::inline v0::detail {

namespace {

constinit thread_local spare_blocks spares;

} // namespace

void group_progress::lease_ended(wake_list& wakes)
{
    has_lost_lease = true;
    if (awaited_claim)
        awaited_claim->notify(wakes);
    notify(wakes);
}

lock_record::lock_record(const std::shared_ptr<core>& self, claim_request request)
    : claim(std::move(request)), condition(true), owner_core(self.get()), weak_core(self),
      is_immediate(self->can.immediate), acquire_state_{}
{
}

lock_record::~lock_record()
{
    if (has_lease_state_)
        lease_state_.~lease_state();
    else
        acquire_state_.~acquire_state();
}

void lock_record::begin_lease_state() noexcept
{
    BOOST_ASSERT(!has_lease_state_);
    const bool renews = acquire_state_.renews;
    const auto max_hold = acquire_state_.max_hold;
    acquire_state_.~acquire_state();
    ::new (&lease_state_) detail::lease_state{.plan = lease_plan(renews, max_hold)};
    has_lease_state_ = true;
}

void lock_record::take_progress_from(lock_record& replaced) noexcept
{
    auto& state = acquire_state();
    auto& other = replaced.acquire_state();
    own_policy = std::move(replaced.own_policy);
    state.outcome = std::move(other.outcome);
    state.outcome_ready = std::exchange(other.outcome_ready, false);
    state.renews = other.renews;
    state.max_hold = other.max_hold;
    state.plan.take_progress_from(other.plan);
    started = replaced.started;
    reported = replaced.reported;
    attempts_made.store(replaced.attempts_made.load(std::memory_order_relaxed), std::memory_order_relaxed);
    is_leadership = replaced.is_leadership;
    group_in_progress = std::exchange(replaced.group_in_progress, nullptr);
    if (group_in_progress && group_in_progress->awaited_claim == &replaced)
        group_in_progress->awaited_claim = this;
}

void* lock_record::operator new(std::size_t size)
{
    return spares.allocate(size);
}

void lock_record::operator delete(void* memory, std::size_t) noexcept
{
    spares.deallocate(memory);
}

void lock_record::lost(lost_reason reason) noexcept
{
    if (const auto alive = weak_core.lock(); alive && current_phase() <= phase::held)
        alive->declare_lost(ptr(this), reason);
}

void lock_record::on_created(create_outcome&& outcome)
{
    if (const pinned_core alive{*this})
        alive->on_created(*this, std::move(outcome));
}

void lock_record::on_refused(create_outcome* busy)
{
    if (const pinned_core alive{*this})
        alive->on_refused(*this, busy);
}

void lock_record::on_released(release_outcome&& outcome)
{
    if (const pinned_core alive{*this})
        alive->on_released(*this, std::move(outcome));
}

void lock_record::on_extended(extend_outcome outcome)
{
    if (const pinned_core alive{*this})
        alive->on_extended(ptr(this), std::move(outcome));
}

void lock_record::on_queried(valid_outcome outcome)
{
    if (const pinned_core alive{*this})
        alive->on_queried(*this, std::move(outcome), nullptr);
}

} // namespace colock::inline v0::detail
