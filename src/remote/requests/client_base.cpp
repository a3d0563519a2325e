// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/client_base.hpp"

#include "remote/policy/deadlines.hpp"
#include "remote/requests/connection_loop.hpp"
#include "remote/requests/listening_loop.hpp"

#include <algorithm>
#include <chrono>

namespace colock::inline v0::remote {

namespace {

using namespace std::chrono_literals;

constexpr lease_clock::time_point never = lease_clock::time_point::max();

} // namespace

client_base::runtime::runtime(asio::any_io_executor new_strand, std::weak_ptr<contact> reports)
    : strand(std::move(new_strand)), reporter(std::move(reports)), timer(strand)
{
}

client_base::runtime::~runtime() = default;

client_base::~client_base() = default;

source_subscription client_base::watch(const std::string& source)
{
    source_subscription subscription(std::shared_ptr<wait_sources>(keep(*this), &sources_), source);
    listen_soon();
    return subscription;
}

void client_base::watch_again(const std::string& source)
{
    if (!sources_.is_active(source))
        listen_soon();
}

void client_base::listen_soon()
{
    if (listening_due_.exchange(true))
        return;
    try {
        on_strand(*this, [](client_base& self) {
            self.listening_due_ = false;
            self.listen();
            self.arm_timer();
        });
    } catch (...) {
        listening_due_ = false;
        throw;
    }
}

client_base::usage client_base::current_usage() const noexcept
{
    const bool has_in_flight = queue_.in_flight_count() > 0;
    const bool needed = has_in_flight || !queue_.empty();
    usage now{.needed = needed,
        .has_in_flight = has_in_flight,
        .has_pending_completions = needed,
        .has_unreported_failures = queue_.has_unreported_failures(),
        .timer_interval = queue_.check_interval()};
    if (const auto* const events = runtime_->events) {
        now.others_open = events->connected();
        now.timer_interval = std::min(now.timer_interval, events->longest_wait().value_or(now.timer_interval));
    }
    return now;
}

void client_base::listen()
{
    runtime_->events->handle(listening_loop::event::needed);
}

void client_base::on_connected()
{
    if (runtime_->events)
        runtime_->events->follow_requests();
    queue_.flush();
    listen();
}

connection_plan::demand client_base::demand(const usage& now) const noexcept
{
    return {.needed = now.needed || !sources_.empty(), .has_in_flight = now.has_in_flight};
}

connection_plan::client_state client_base::client_state(const usage& now) const noexcept
{
    return {.others_open = now.others_open,
        .has_pending_completions = now.has_pending_completions,
        .closing = !runtime_->closing.empty()};
}

void client_base::arm_timer()
{
    auto& run = *runtime_;
    const auto now = current_usage();
    const auto next_delay = requests().plan().next_timer_in(demand(now), client_state(now), now.timer_interval);
    if (!next_delay) {
        // `timer_due` does not tell whether the timer is armed: a handler that was queued before the timer was armed
        // again clears it.
        run.timer_due = never;
        run.timer.cancel();
        return;
    }
    const auto delay = *next_delay;
    if (delay == lease_clock::duration::max())
        return;
    // An earlier timer event is sufficient, and so is one that is slightly later.
    if (run.timer_due != never && run.timer_delay <= delay)
        return;
    const auto at = lease_clock::now() + delay;
    if (run.timer_due <= at + 5ms)
        return;
    run.timer_due = at;
    run.timer_delay = delay;
    run.timer.expires_after(delay);
    run.timer.async_wait([self = keep(*this)](const error_code& error) {
        if (!error)
            self->on_timer(deadlines::stall_time(std::exchange(self->runtime_->timer_due, never), lease_clock::now()));
    });
}

void client_base::on_timer(lease_clock::duration stall_time)
{
    queue_.end_overdue(stall_time);
    if (runtime_->events)
        runtime_->events->sweep();
    sweep();
    if (requests().plan().out_of_time(lease_clock::now())) {
        queue_.fail_all();
        requests().give_up();
    }
    requests().handle(connection_loop::event::timer);
    finish_close();
    arm_timer();
}

void client_base::finish_close() noexcept
{
    auto& run = *runtime_;
    if (run.closing.empty())
        return;
    const auto now = current_usage();
    if (now.has_unreported_failures || !requests().plan().finish_close(lease_clock::now(), client_state(now)))
        return;
    complete_closes();
}

void client_base::complete_closes() noexcept
{
    auto completions = std::exchange(runtime_->closing, {});
    // The timer events of the close are not needed any more.
    arm_timer();
    for (auto& each : completions)
        each(close_outcome{});
}

void client_base::cancel_close() noexcept
{
    if (!closes_.exchange(false))
        return;
    try {
        on_strand(*this, [](client_base& self) {
            self.requests().plan().cancel_close();
            self.complete_closes();
        });
    } catch (...) {
        // Without memory, the close continues.
        closes_ = true;
    }
}

void client_base::close(lease_clock::duration timeout, completion<close_outcome> done)
{
    on_strand(*this, [timeout, done = std::move(done)](client_base& self) mutable {
        self.runtime_->closing.push_back(std::move(done));
        self.requests().plan().close(saturating_add(lease_clock::now(), timeout));
        self.on_timer({});
    });
    // Set after the post, so that a cancellation by another thread is never posted before the close.
    closes_ = true;
}

void client_base::retire() noexcept
{
    try {
        on_strand(*this, [](client_base& self) {
            self.requests().plan().retire();
            self.on_timer({});
        });
    } catch (...) {
        // Without memory, the connection remains open until its idle timeout.
    }
}

void client_base::context_shutdown() noexcept
{
    std::unique_ptr<runtime> dead;
    {
        const std::lock_guard guard(mutex_);
        dead = std::move(runtime_);
    }
    queue_.drop_all();
    static_cast<void>(sources_.drop_all());
}

} // namespace colock::inline v0::remote
