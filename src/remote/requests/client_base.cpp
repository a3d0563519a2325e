// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "remote/requests/client_base.hpp"

#include "remote/policy/deadlines.hpp"
#include "remote/requests/connection_loop.hpp"
#include "util/strand.hpp"

#include <chrono>

namespace colock::remote {

namespace {

using namespace std::chrono_literals;

constexpr lease_clock::time_point never = lease_clock::time_point::max();

} // namespace

client_base::runtime::runtime(const asio::any_io_executor& executor, std::weak_ptr<client_events> events)
    : strand(colock::detail::new_strand(executor)), told(std::move(events)), timer(strand)
{
}

client_base::runtime::~runtime() = default;

client_base::~client_base() = default;

interest client_base::watch(const std::string& source)
{
    interest made(std::shared_ptr<wait_sources>(keep(*this), &sources_), source);
    listen_soon();
    return made;
}

void client_base::watch_again(const std::string& source)
{
    if (!sources_.armed(source))
        listen_soon();
}

void client_base::listen_soon()
{
    if (listening_due_.exchange(true))
        return;
    try {
        on_strand(*this, [](client_base& self) {
            self.listening_due_ = false;
            self.requests().plan().reopen();
            self.listen();
            self.arm_turn();
        });
    } catch (...) {
        listening_due_ = false;
        throw;
    }
}

connection_plan::demand client_base::demand(const usage& now) const noexcept
{
    return {.needed = now.needed || !sources_.empty(), .under_way = now.under_way};
}

connection_plan::surroundings client_base::surroundings(const usage& now) const noexcept
{
    return {.others_open = now.others_open,
        .has_pending_completions = now.has_pending_completions,
        .closing = !runtime_->closing.empty()};
}

void client_base::arm_turn()
{
    auto& run = *runtime_;
    const auto now = current_usage();
    const auto wanted = requests().plan().turns_again_in(demand(now), surroundings(now), now.pace);
    if (!wanted) {
        if (std::exchange(run.turn_at, never) != never)
            run.timer.cancel();
        return;
    }
    const auto delay = *wanted;
    if (delay == lease_clock::duration::max())
        return;
    // An earlier timer event is sufficient, and so is one that is slightly later.
    if (run.turn_at != never && run.turn_delay <= delay)
        return;
    const auto at = lease_clock::now() + delay;
    if (run.turn_at <= at + 5ms)
        return;
    run.turn_at = at;
    run.turn_delay = delay;
    run.timer.expires_after(delay);
    run.timer.async_wait([self = keep(*this)](const error_code& code) {
        if (!code)
            self->turn(deadlines::stood_still(std::exchange(self->runtime_->turn_at, never), lease_clock::now()));
    });
}

void client_base::turn(lease_clock::duration stood_still)
{
    sweep(stood_still);
    if (requests().plan().out_of_time(lease_clock::now()))
        give_up_all();
    requests().on(connection_loop::event::turn);
    finish_close();
    arm_turn();
}

void client_base::finish_close() noexcept
{
    auto& run = *runtime_;
    if (run.closing.empty())
        return;
    const auto now = current_usage();
    if (now.has_unreported_failures || !requests().plan().finish_close(lease_clock::now(), surroundings(now)))
        return;
    tell_closed();
}

void client_base::tell_closed() noexcept
{
    auto told = std::exchange(runtime_->closing, {});
    // The timer events of the close are not needed any more.
    arm_turn();
    for (auto& each : told)
        each(closed{});
}

void client_base::cancel_close() noexcept
{
    if (!closes_.exchange(false))
        return;
    try {
        on_strand(*this, [](client_base& self) {
            self.requests().plan().cancel_close();
            self.tell_closed();
        });
    } catch (...) {
        // Without memory, the close continues.
        closes_ = true;
    }
}

void client_base::close(lease_clock::duration deadline, completion<closed> done)
{
    on_strand(*this, [deadline, done = std::move(done)](client_base& self) mutable {
        self.runtime_->closing.push_back(std::move(done));
        self.requests().plan().close(saturating_add(lease_clock::now(), deadline));
        self.turn({});
    });
    // Set after the post, so that a cancellation by another thread is never posted before the close.
    closes_ = true;
}

void client_base::retire() noexcept
{
    try {
        on_strand(*this, [](client_base& self) {
            self.requests().plan().retire();
            self.turn({});
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
    for (auto posting = posting_.load(std::memory_order_acquire); posting != 0;
        posting = posting_.load(std::memory_order_acquire))
        posting_.wait(posting, std::memory_order_acquire);
    drop_all();
    static_cast<void>(sources_.drop_all());
}

} // namespace colock::remote
