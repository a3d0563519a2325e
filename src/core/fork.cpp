// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/core.hpp"

namespace colock::detail {

/// The child of a fork has a copy of everything that its parent holds and asks for, tokens included. It keeps none of
/// it: what is held is lost, what is being given back is the parent's to give back, and an acquire that is resumed
/// finds that its claim is inherited. What is still under way here ends without effect.
void core::context_forked() noexcept
{
    work todo;
    {
        const std::lock_guard guard(mutex_);
        while (!leases_.all().empty()) {
            record& held = leases_.all().front();
            leases_.take_out(held);
            held.end_reason = lost_reason::forked;
            ++stats_.losses[static_cast<std::size_t>(lost_reason::forked)];
            if (options_.observer)
                todo.tell({.what = work::note::lost, .subject = &held, .reason = lost_reason::forked});
            if (key_queue* queue = queues_.find(held); queue && queue->holder == &held)
                queue->holder = nullptr;
            leave_to_parent(held, todo);
        }
        while (auto ending = settler_.leave_to_parent(todo)) {
            leave_to_parent(*ending, todo);
            todo.ended.push_back(std::move(ending));
        }
        // Their threads are the parent's.
        quick_releases_ended_ = quick_releases_begun_;
        granting_at_once_ = 0;
        // Each looks anew at what has become of what it waits for.
        while (!parked_.empty())
            todo.wakes.add(parked_.front());
    }
    todo.run(*this);
}

void core::leave_to_parent(record& inherited, work& todo) noexcept
{
    inherited.plan.renewing();
    timers_.schedule(inherited, time_point::max());
    inherited.move_to(phase::ended);
    inherited.notify(todo.wakes);
}

} // namespace colock::detail
