// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/background_release.hpp"

#include "core/state/core.hpp"

#include <algorithm>

namespace colock::inline v0::detail {

namespace {

/// Returns whether the answer to the release has to be awaited, and stores in `seen` the version at which there was no
/// answer. The mutex must be held.
bool watch_for_answer(core& self, record& ending, std::uint32_t& seen)
{
    if (ending.current_phase() == phase::ended || ending.release_state().answered)
        return false;
    seen = ending.version;
    const bool is_first_check = ending.release_state().answer_deadline == lease_clock::time_point::max();
    const bool just_sent =
        ending.in_flight == operation::release && ending.release_state().retry_at == lease_clock::time_point::max();
    if (is_first_check && just_sent && self.adapter_ends_in_time())
        return true;
    const auto now = lease_clock::now();
    if (is_first_check)
        ending.release_state().answer_deadline = saturating_add(now, self.options.operation_timeout);
    if (now >= ending.release_state().answer_deadline)
        return false;
    ending.lease_state().answer_by = std::min(ending.lease_state().answer_by, ending.release_state().answer_deadline);
    self.timers.schedule(ending, std::min(ending.release_state().retry_at, ending.lease_state().answer_by));
    return true;
}

} // namespace

bool must_await_answer(core& self, record& ending, std::uint32_t& seen)
{
    if (ending.current_phase() == phase::ended)
        return false;
    const std::lock_guard guard(self.mutex);
    return watch_for_answer(self, ending, seen);
}

release_start begin_release(core& self, record& held, std::uint32_t* seen)
{
    release_start begun;
    self.update([&](deferred_actions& actions) {
        begun.was_held = self.begin_ending(held, lost_reason::released, actions);
        begun.waits = seen && !self.can.immediate && watch_for_answer(self, held, *seen);
    });
    if (seen && self.can.immediate)
        begun.waits = must_await_answer(self, held, *seen);
    return begun;
}

void release_in_background(core& self, record& held) noexcept
{
    if (held.current_phase() == phase::held)
        begin_release(self, held);
    if (held.current_phase() != phase::ending)
        return;
    const std::lock_guard guard(self.mutex);
    self.cleanup.keep_until_ended(held);
}

void abandon_acquire(core& self, record& subject) noexcept
{
    subject.cancel();
    self.update([&](deferred_actions& actions) { self.abandon(subject, actions); });
    release_in_background(self, subject);
}

} // namespace colock::inline v0::detail
