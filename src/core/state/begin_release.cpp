// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/begin_release.hpp"

#include "core/state/core.hpp"

#include <algorithm>

namespace colock::inline v0::detail {

namespace {

/// Returns whether the answer to the release has to be awaited, and stores in `seen` the version at which there was no
/// answer. The mutex must be held.
bool watch_for_answer(core& self, lock_record& record, std::uint32_t& seen)
{
    if (record.current_phase() == phase::ended || record.release_state().answered)
        return false;
    seen = record.version;
    const bool is_first_check = record.release_state().wait_deadline == lease_clock::time_point::max();
    const bool just_sent =
        record.in_flight == operation::release && record.release_state().retry_at == lease_clock::time_point::max();
    if (is_first_check && just_sent && self.adapter_ends_in_time())
        return true;
    const auto now = lease_clock::now();
    if (is_first_check)
        record.release_state().wait_deadline = saturating_add(now, self.options.operation_timeout);
    if (now >= record.release_state().wait_deadline)
        return false;
    record.lease_state().earliest_wait_deadline =
        std::min(record.lease_state().earliest_wait_deadline, record.release_state().wait_deadline);
    self.timers.schedule(
        record, std::min(record.release_state().retry_at, record.lease_state().earliest_wait_deadline));
    return true;
}

} // namespace

bool must_await_answer(core& self, lock_record& record, std::uint32_t& seen)
{
    if (record.current_phase() == phase::ended)
        return false;
    const std::lock_guard guard(self.mutex);
    return watch_for_answer(self, record, seen);
}

begin_release_result begin_release(core& self, lock_record& record, std::uint32_t* seen)
{
    begin_release_result start;
    self.update([&](deferred_actions& actions) {
        start.was_held = self.begin_ending(record, lost_reason::released, actions);
        start.waits = seen && !self.can.immediate && watch_for_answer(self, record, *seen);
    });
    if (seen && self.can.immediate)
        start.waits = must_await_answer(self, record, *seen);
    return start;
}

void release_in_background(core& self, lock_record& record) noexcept
{
    if (record.current_phase() == phase::held)
        begin_release(self, record);
    if (record.current_phase() != phase::ending)
        return;
    const std::lock_guard guard(self.mutex);
    self.releases.keep_core_until_empty(record);
}

void abandon_acquire(core& self, lock_record& record) noexcept
{
    record.cancel();
    self.update([&](deferred_actions& actions) { self.abandon(record, actions); });
    release_in_background(self, record);
}

} // namespace colock::inline v0::detail
