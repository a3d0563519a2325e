// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/record.hpp"

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
    has_lost = true;
    if (waits_for)
        waits_for->notify(wakes);
    notify(wakes);
}

record::record(const std::shared_ptr<core>& owner, claim_request request)
    : claim(std::move(request)), condition(false), owner_core(owner.get()), weak_core(owner),
      answered_at_once(owner->can.immediate), acquire_{}
{
}

record::~record()
{
    if (has_acquired_)
        lease_state_.~lease_state();
    else
        acquire_.~acquire_state();
}

void record::mark_acquired() noexcept
{
    BOOST_ASSERT(!has_acquired_);
    const bool renews = acquire_.renews;
    const auto max_hold = acquire_.max_hold;
    acquire_.~acquire_state();
    ::new (&lease_state_) detail::lease_state{.plan = lease_plan(renews, max_hold)};
    has_acquired_ = true;
}

void record::continue_for(record& replaced) noexcept
{
    auto& state = acquire();
    auto& other = replaced.acquire();
    own_policy = std::move(replaced.own_policy);
    state.outcome = std::move(other.outcome);
    state.outcome_ready = std::exchange(other.outcome_ready, false);
    state.renews = other.renews;
    state.max_hold = other.max_hold;
    state.plan.continue_for(other.plan);
    started = replaced.started;
    reported = replaced.reported;
    attempts_made.store(replaced.attempts_made.load(std::memory_order_relaxed), std::memory_order_relaxed);
    is_leadership = replaced.is_leadership;
    group_in_progress = std::exchange(replaced.group_in_progress, nullptr);
    if (group_in_progress && group_in_progress->waits_for == &replaced)
        group_in_progress->waits_for = this;
}

void* record::operator new(std::size_t size)
{
    return spares.allocate(size);
}

void record::operator delete(void* memory, std::size_t) noexcept
{
    spares.deallocate(memory);
}

void record::lost(lost_reason reason) noexcept
{
    if (const auto alive = weak_core.lock(); alive && current_phase() <= phase::held)
        alive->declare_lost(ptr(this), reason);
}

void record::on_created(create_outcome&& result)
{
    if (const pinned_core alive{*this})
        alive->on_created(*this, std::move(result));
}

void record::on_refused(create_outcome* busy)
{
    if (const pinned_core alive{*this})
        alive->on_refused(*this, busy);
}

void record::on_released(release_outcome&& result)
{
    if (const pinned_core alive{*this})
        alive->on_released(*this, std::move(result));
}

void record::on_extended(extend_outcome result)
{
    if (const pinned_core alive{*this})
        alive->on_extended(ptr(this), std::move(result));
}

void record::on_verified(valid_outcome outcome)
{
    if (const pinned_core alive{*this})
        alive->on_checked(*this, std::move(outcome), nullptr);
}

} // namespace colock::inline v0::detail
