// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/core.hpp"

#include "core/policy/default_owner.hpp"
#include "core/policy/validation.hpp"

#include <algorithm>
#include <chrono>

namespace colock::inline v0::detail {

std::shared_ptr<core> core::make(std::shared_ptr<adapter> backend, locker_options options)
{
    if (!backend) {
        throw validation_error(errc::invalid_options,
            {.detail = "the adapter is null; make one with a factory, such as colock::memory::make_adapter"});
    }
    check_locker_options(options, *backend);
    auto result = std::make_shared<core>(std::move(backend), std::move(options));
    result->timers.set_owner<&core::on_timer, &core::disarm_unused_timer>(result);
    if (const auto executor = result->executor()) {
        join_context(executor, result);
        result->gate_ = context_gate::of(executor);
    } else {
        // The adapter's context has shut down.
        result->dead = true;
        result->closed_to_new = true;
        static_cast<void>(result->timers.stop());
    }
    if (result->options.observer)
        result->backend->attach(result->options.observer);
    if (!result->can.immediate)
        result->backend->watch_contact(result);
    result->backend->add_user();
    return result;
}

core::core(std::shared_ptr<adapter> adapter, locker_options requested_options)
    : backend(std::move(adapter)), can(backend->traits().capabilities), limits(backend->traits().limits),
      options(std::move(requested_options)), margins{options.minimum_validity, options.stop_margin},
      watches_all(options.observer || !can.expires), timers(*backend), queues(can.fifo, timers), events(mutex),
      default_owner(make_default_owner(options))
{
}

void core::count_end_of_wait(time_point started)
{
    --stats.waiting;
    const auto waited = lease_clock::now() - started;
    stats.waited_total += waited;
    stats.waited_longest = std::max(stats.waited_longest, std::chrono::nanoseconds(waited));
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
        for (lock_record& record : leases.all()) {
            if (record.lease_state().plan.body_runs())
                leases.stop_body(record, lost_reason::shutting_down, actions);
        }
        wake_all_suspended(actions.wakes);
        releases.give_up(actions);
    });
    // A shutdown may have been notifying in batches. Notifies those that are left.
    shutdown.notify_remaining();
}

} // namespace colock::inline v0::detail
