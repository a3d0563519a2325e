// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/abandoned_acquire.hpp"

#include "core/state/background_release.hpp"
#include "core/state/core.hpp"

namespace colock::inline v0::detail {

void abandon_acquire(core& self, const record::ptr& wanted) noexcept
{
    record& subject = *wanted;
    subject.cancel();
    {
        deferred_actions actions;
        {
            const std::lock_guard guard(self.mutex);
            self.queues.leave(subject, actions.wakes);
            if (subject.current_phase() == phase::acquiring) {
                self.remove_single_attempt(subject);
                if (subject.acquire.stop_waiting() && !subject.group_in_progress)
                    --self.stats.waiting;
                subject.group_in_progress = nullptr;
                if (subject.acquire.stop_listening())
                    actions.add_request(deferred_actions::action::cancel_wait, subject);
                self.timers.schedule(subject, lease_clock::time_point::max());
                if (subject.in_flight == operation::none && !subject.left_trace) {
                    subject.move_to(phase::ended);
                } else {
                    subject.mark_acquired();
                    subject.release_state().is_settling = true;
                    cleanup_queue::note_request(subject, subject.ttl());
                    subject.move_to(phase::ending);
                    self.cleanup.enter(subject);
                    self.cleanup.start_release(subject, actions);
                }
            }
        }
        actions.run(self);
    }
    release_in_background(self, subject);
}

} // namespace colock::inline v0::detail
