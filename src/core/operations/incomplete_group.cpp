// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/incomplete_group.hpp"

#include <algorithm>
#include <mutex>

namespace colock::inline v0::detail::operations {

using namespace std::chrono_literals;

void incomplete_group::add(lock_record::ptr record)
{
    renews_ = std::exchange(record->acquire_state().renews, record->ttl() > 0ms);
    max_hold_ = std::exchange(record->acquire_state().max_hold, 0ms);
    record->group_in_progress = &progress_;
    all_.emplace_back(std::move(record));
}

void incomplete_group::set_awaited_claim(lock_record* next)
{
    const std::lock_guard guard(core_->mutex);
    progress_.awaited_claim = next;
}

bool incomplete_group::has_lost() const
{
    const std::lock_guard guard(core_->mutex);
    return progress_.has_lost_lease;
}

bool incomplete_group::begin_renewals(lease_clock::time_point until, std::uint32_t& seen)
{
    return core_->update([&](deferred_actions& actions) {
        bool is_unanswered = false;
        if (progress_.has_lost_lease)
            return false;
        const auto now = lease_clock::now();
        for (auto& each : all_) {
            lock_record& record = *each.record;
            // The timer may be late.
            if (record.lease().has_ended(now))
                static_cast<void>(core_->leases.end_if_lost(record, actions));
            if (!needs_renewal(each, now) ||
                (each.renewed_from != lease_clock::time_point() && record.lease().ttl_bound() > each.renewed_from))
                continue;
            is_unanswered = true;
            if (std::exchange(each.renewed_from, record.lease().ttl_bound()) == lease_clock::time_point())
                core_->leases.start_renewal(record, now, actions);
        }
        core_->timers.schedule_wait(progress_, until);
        seen = progress_.version;
        return is_unanswered && !progress_.has_lost_lease;
    });
}

bool incomplete_group::complete(bool& waits, lease_clock::time_point started)
{
    return core_->update([&](deferred_actions&) {
        const auto now = lease_clock::now();
        if (core_->closed_to_new || progress_.has_lost_lease ||
            !std::ranges::all_of(all_, [&](const requested_lock& each) { return is_long_enough(each, now); }))
            return false;
        for (auto& each : all_)
            core_->complete_grant(*each.record, renews_, max_hold_, now);
        if (std::exchange(waits, false))
            core_->count_end_of_wait(started);
        return true;
    });
}

std::vector<lock> incomplete_group::take_locks()
{
    std::vector<lock> locks;
    locks.reserve(all_.size());
    for (auto& each : all_) {
        each.on_exit.dismiss();
        locks.push_back(lock_record::make_lock(std::move(each.record), std::shared_ptr(core_)));
    }
    return locks;
}

void incomplete_group::release_all() noexcept
{
    set_awaited_claim(nullptr);
    while (!all_.empty())
        all_.pop_back();
    const std::lock_guard guard(core_->mutex);
    progress_.has_lost_lease = false;
}

bool incomplete_group::needs_renewal(const requested_lock& member, lease_clock::time_point now) const
{
    const auto ends = member.record->lease().ttl_bound();
    const auto ttl = member.record->ttl();
    const auto min_left = std::max<lease_clock::duration>(
        ttl - renewal_delay(ttl), core_->options.minimum_validity.value_or(std::chrono::milliseconds(0)));
    return ends != lease_clock::time_point::max() && ends - now < min_left;
}

bool incomplete_group::is_long_enough(const requested_lock& member, lease_clock::time_point now) const
{
    if (member.record->lease().has_ended(now))
        return false;
    const auto min_left = core_->options.minimum_validity.value_or(std::max(10ms, member.record->ttl() / 10));
    const auto ends = member.record->lease().ttl_bound();
    return core_->can.immediate || ends == lease_clock::time_point::max() || ends - now >= min_left;
}

} // namespace colock::inline v0::detail::operations
