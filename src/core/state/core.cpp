// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/core.hpp"

#include "core/policy/default_owner.hpp"
#include "core/policy/validation.hpp"

#include <algorithm>

namespace colock::inline v0::detail {

std::shared_ptr<core> core::make(std::shared_ptr<adapter> backend, locker_options options)
{
    if (!backend) {
        throw validation_error(errc::invalid_options,
            {.detail = "the adapter is null; make one with a factory, such as colock::memory::make_adapter"});
    }
    check_locker_options(options, *backend);
    auto made = std::make_shared<core>(std::move(backend), std::move(options));
    made->timers.set_owner<&core::on_timer, &core::on_timer_unused>(made);
    if (const auto executor = made->executor()) {
        join_context(executor, made);
        made->gate_ = context_gate::of(executor);
    } else {
        // The adapter's context has shut down.
        made->dead = true;
        made->closed_to_new = true;
        static_cast<void>(made->timers.stop());
    }
    if (made->options.observer)
        made->backend->attach(made->options.observer);
    if (!made->can.immediate)
        made->backend->watch_contact(made);
    made->backend->add_user();
    return made;
}

core::core(std::shared_ptr<adapter> adapter, locker_options chosen)
    : backend(std::move(adapter)), can(backend->traits().capabilities), limits(backend->traits().limits),
      options(std::move(chosen)), margins{options.minimum_validity, options.stop_margin},
      watches_all(options.observer || !can.expires), timers(*backend), queues(can.fifo, timers), events(mutex),
      default_owner(make_default_owner(options))
{
}

void core::context_shutdown() noexcept
{
    // Destroyed without the mutex.
    std::optional<lease_timer> timer;
    update([&](deferred_actions& actions) {
        dead = true;
        closed_to_new = true;
        timer = timers.stop();
        // No timer renews a lease any more, so the bodies have to stop.
        for (record& held : leases.all()) {
            if (held.lease_state().plan.body_runs())
                leases.stop_body(held, lost_reason::shutting_down, actions);
        }
        wake_all_suspended(actions.wakes);
        cleanup.give_up(actions);
    });
    // A shutdown may have been notifying in batches. Notifies those that are left.
    notifier.notify_remaining();
}

void core::notify_drained()
{
    update([&](deferred_actions& actions) { cleanup.drained().notify(actions.wakes); });
}

} // namespace colock::inline v0::detail
