// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/operations.hpp"
#include "core/state/core.hpp"
#include "core/state/timer_guard.hpp"

#include <algorithm>

namespace colock::detail::operations {

namespace {

/// What is still asked of it may take so long.
void detach_from_backend(core& self, lease_clock::duration patience, completion<closed> done)
{
    bool is_last = false;
    {
        const std::lock_guard guard(self.mutex);
        is_last = !std::exchange(self.detached, true) && self.backend->remove_user() && !self.dead;
    }
    if (!is_last)
        return done(closed{});
    self.backend->start_close(patience, std::move(done));
    // Another locker may have been made by another thread before the close began.
    if (self.backend->has_users())
        self.backend->cancel_close();
}

struct close_state : plain_condition
{
    bool over = false;
};

asio::awaitable<void> close_backend(
    std::shared_ptr<core> self, lease_clock::duration patience, lease_clock::time_point until)
{
    auto state = std::make_shared<close_state>();
    detach_from_backend(*self, patience, [state, weak = self->weak_from_this()](closed) {
        const auto owner = weak.lock();
        if (!owner)
            return;
        deferred_actions actions;
        {
            const std::lock_guard guard(owner->mutex);
            state->over = true;
            state->notify(actions.wakes);
        }
        actions.run(*owner);
    });
    const timer_guard on_exit{*self, *state};
    wait_state place;
    for (;;) {
        std::uint32_t seen = 0;
        {
            const std::lock_guard guard(self->mutex);
            if (state->over || self->dead || lease_clock::now() >= until)
                co_return;
            self->timers.schedule(*state, until);
            seen = state->version;
        }
        co_await self->async_wait(*state, place, seen);
    }
}

/// Acquires that have been told to end, but not by their backend: what it has granted them, or may yet, is to be given
/// back.
void report_undecided(core& self, std::vector<std::string>& keys)
{
    const auto add = [&](const record& wanted) {
        const bool is_granted = wanted.outcome_ready && wanted.outcome().status == create_status::granted;
        const bool keeps_a_place = wanted.left_trace && self.can.fifo && !self.can.immediate;
        if (wanted.under_way != operation::none || wanted.in_doubt() || is_granted || keeps_a_place)
            keys.push_back(wanted.key());
    };
    self.queues.for_each(add);
    std::for_each(self.single_attempts.begin(), self.single_attempts.end(), add);
}

/// What ends inside a call that another thread has made takes no time, but the thread may be paused: it gets so much of
/// it after any deadline.
constexpr auto call_patience = std::chrono::milliseconds(100);

/// How many other threads are inside the backend, for an acquire or a release that ends before their call returns. The
/// mutex is held.
unsigned calls_under_way(const core& self) noexcept
{
    return self.granting_at_once + (self.quick_releases_begun - self.quick_releases_ended);
}

shutdown_report end_shutdown(core& self)
{
    shutdown_report report;
    deferred_actions actions;
    {
        const std::lock_guard guard(self.mutex);
        for (record& held : self.leases.all()) {
            report.still_running.push_back(held.key());
            held.plan.left_to_its_ttl();
            self.leases.reschedule(held);
        }
        report.unsettled = self.cleanup.leave_behind(actions);
        report_undecided(self, report.unsettled);
        report.unproven = self.stats.unproven;
    }
    actions.run(self);
    return report;
}

} // namespace

void orphan(core& self)
{
    self.notifier.begin(shutdown_notifier::what::waiters);
    detach_from_backend(self, self.options.operation_timeout, [](closed) {});
}

asio::awaitable<shutdown_report> shutdown(std::shared_ptr<core> self, std::chrono::milliseconds deadline)
{
    const auto now = lease_clock::now();
    const auto until = saturating_add(now, deadline);
    const auto calls_end_by = now + call_patience;
    self->notifier.begin(shutdown_notifier::what::waiters_and_leases);
    const timer_guard on_exit{*self, self->cleanup.drained()};
    // Only those that were waited for: a call that has begun since is about to be refused.
    unsigned unfinished_calls = 0;
    wait_state place;
    for (;;) {
        std::uint32_t seen = 0;
        {
            const std::lock_guard guard(self->mutex);
            // To tell those who wait takes no time.
            const bool still_tells = self->notifier.still_tells();
            const bool others_call = calls_under_way(*self) != 0;
            if (self->leases.all().empty() && self->cleanup.empty() && self->acquiring == 0 && !others_call &&
                !still_tells)
                break;
            const auto ends_at = others_call ? std::max(until, calls_end_by) : until;
            if (lease_clock::now() < ends_at && !self->dead) {
                self->timers.schedule(self->cleanup.drained(), std::min(self->cleanup.drained().due, ends_at));
            } else if (!still_tells && !(self->dead && others_call)) {
                unfinished_calls = calls_under_way(*self);
                break;
            }
            seen = self->cleanup.drained().version;
        }
        co_await self->async_wait(self->cleanup.drained(), place, seen);
    }
    auto report = end_shutdown(*self);
    report.unfinished_calls = unfinished_calls;
    // A backend may have something to take back by itself; but what is unsettled here has had its time.
    const auto patience = report.unsettled.empty() ? self->options.operation_timeout : std::chrono::milliseconds(0);
    co_await close_backend(self, patience, until);
    report.unproven += self->backend->unproven();
    co_return report;
}

} // namespace colock::detail::operations
