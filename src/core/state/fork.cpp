// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/core.hpp"

#include <colock/detail/generation.hpp>

#include <pthread.h>

#include <atomic>

namespace colock::inline v0::detail {

std::atomic<unsigned> generation{1};

namespace {

[[maybe_unused]] const bool fork_is_watched = [] {
    ::pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
    return true;
}();

void drop_after_fork(core& self, record& subject, deferred_actions& actions) noexcept
{
    subject.plan.forget_renewal();
    self.timers.schedule(subject, lease_clock::time_point::max());
    subject.move_to(phase::ended);
    subject.notify(actions.wakes);
}

} // namespace

/// The child of a fork has a copy of everything that its parent holds and requests, including the tokens. The child
/// keeps nothing of it. Held locks are lost, the parent completes the releases, and an acquire that is resumed finds
/// that its claim is from the parent. Operations in flight end without effect in the child.
void core::context_forked() noexcept
{
    deferred_actions actions;
    {
        const std::lock_guard guard(mutex);
        while (!leases.all().empty()) {
            record& held = leases.all().front();
            leases.remove(held);
            held.end_reason = lost_reason::forked;
            if (auto* const group = std::exchange(held.group_in_progress, nullptr)) {
                group->has_lost = true;
            } else {
                ++stats.losses[static_cast<std::size_t>(lost_reason::forked)];
                leases.note_hold_time(held);
                if (options.observer) {
                    events.add({.what = lock_event::kind::lost,
                        .subject = &held,
                        .reason = lost_reason::forked,
                        .span = held.release_state().held.span()});
                }
            }
            if (key_queue* queue = queues.find(held); queue && queue->holder == &held)
                queue->holder = nullptr;
            drop_after_fork(*this, held, actions);
        }
        while (auto ending = cleanup.drop_after_fork(actions)) {
            drop_after_fork(*this, *ending, actions);
            actions.ended.add(*ending.detach());
        }
        // The threads that were inside the backend exist only in the parent.
        immediate_creates = 0;
        events.forked();
        notifier.stop();
        // Each waiter checks the state of its record again.
        wake_all_suspended(actions.wakes);
    }
    actions.run(*this);
}

} // namespace colock::inline v0::detail
