// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/core.hpp"
#include "core/unscheduled.hpp"

#include <algorithm>

namespace colock::detail {

void core::orphan()
{
    work todo;
    {
        const std::lock_guard guard(mutex_);
        closed_to_new_ = true;
        pausing_.notify(todo.wakes);
        queues_.for_each([&](record& member) { member.notify(todo.wakes); });
    }
    todo.run(*this);
    detach_from_backend(options_.operation_timeout, [](closed) {});
}

void core::detach_from_backend(lease_clock::duration patience, completion<closed> done)
{
    bool is_last = false;
    {
        const std::lock_guard guard(mutex_);
        is_last = !std::exchange(detached_, true) && backend_->remove_user() && !dead_;
    }
    if (is_last)
        backend_->start_close(patience, std::move(done));
    else
        done(closed{});
}

asio::awaitable<shutdown_report> core::shutdown(std::shared_ptr<core> self, std::chrono::milliseconds deadline)
{
    const auto until = saturating_add(lease_clock::now(), deadline);
    self->begin_shutdown();
    const unscheduled at_end{*self, self->settler_.drained()};
    parked place;
    for (;;) {
        std::uint32_t seen = 0;
        {
            const std::lock_guard guard(self->mutex_);
            // What ends inside the call that another thread has made is not to be reported as unsettled, and takes no
            // time.
            const bool ends_at_once =
                self->quick_releases_begun_ != self->quick_releases_ended_ || self->granting_at_once_ != 0;
            if (self->leases_.all().empty() && self->settler_.empty() && self->acquiring_ == 0 && !ends_at_once)
                break;
            if (lease_clock::now() < until)
                self->timers_.schedule(self->settler_.drained(), std::min(self->settler_.drained().due, until));
            else if (!ends_at_once)
                break;
            seen = self->settler_.drained().version;
        }
        co_await self->park(self->settler_.drained(), place, seen);
    }
    auto report = self->end_shutdown();
    // A backend may have something to take back by itself; but what is unsettled here has had its time.
    const auto patience = report.unsettled.empty() ? self->options_.operation_timeout : std::chrono::milliseconds(0);
    co_await close_backend(self, patience, until);
    report.unproven += self->backend_->unproven();
    co_return report;
}

struct core::close_state : notice
{
    bool over = false;
};

asio::awaitable<void> core::close_backend(std::shared_ptr<core> self, lease_clock::duration patience, time_point until)
{
    auto state = std::make_shared<close_state>();
    self->detach_from_backend(patience, [state, weak = self->weak_from_this()](closed) {
        const auto owner = weak.lock();
        if (!owner)
            return;
        work todo;
        {
            const std::lock_guard guard(owner->mutex_);
            state->over = true;
            state->notify(todo.wakes);
        }
        todo.run(*owner);
    });
    const unscheduled at_end{*self, *state};
    parked place;
    for (;;) {
        std::uint32_t seen = 0;
        {
            const std::lock_guard guard(self->mutex_);
            if (state->over || lease_clock::now() >= until)
                co_return;
            self->timers_.schedule(*state, until);
            seen = state->version;
        }
        co_await self->park(*state, place, seen);
    }
}

void core::begin_shutdown()
{
    work todo;
    {
        const std::lock_guard guard(mutex_);
        closed_to_new_ = true;
        pausing_.notify(todo.wakes);
        queues_.for_each([&](record& member) { member.notify(todo.wakes); });
        for (auto next = leases_.all().begin(); next != leases_.all().end();) {
            record& held = *next++;
            if (held.plan.body_runs())
                leases_.stop_body(held, lost_reason::shutting_down, todo);
            else
                leases_.begin_end(held, lost_reason::shutting_down, todo);
        }
    }
    todo.run(*this);
}

/// Acquires that have been told to end, but not by their backend: what it has granted them, or may yet, is to be given
/// back.
void core::report_undecided(std::vector<std::string>& keys)
{
    const auto add = [&](const record& wanted) {
        const bool is_granted = wanted.outcome_ready && wanted.outcome.status == create_status::granted;
        const bool keeps_a_place = wanted.left_trace && can_.fifo && !can_.immediate;
        if (wanted.under_way != operation::none || wanted.tainted() || is_granted || keeps_a_place)
            keys.push_back(wanted.key());
    };
    queues_.for_each(add);
    std::for_each(trying_.begin(), trying_.end(), add);
}

shutdown_report core::end_shutdown()
{
    shutdown_report report;
    work todo;
    {
        const std::lock_guard guard(mutex_);
        for (record& held : leases_.all()) {
            report.still_running.push_back(held.key());
            held.plan.left_to_its_ttl();
            leases_.reschedule(held);
        }
        report.unsettled = settler_.leave_behind(todo);
        report_undecided(report.unsettled);
        report.unproven = stats_.unproven;
    }
    todo.run(*this);
    return report;
}

} // namespace colock::detail
