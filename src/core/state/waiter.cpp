// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/waiter.hpp"

#include "core/state/core.hpp"
#include "util/simulation_marks.hpp"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <mutex>
#include <new>
#include <utility>

namespace colock::inline v0::detail {

class waiter::continuation
{
public:
    continuation(ptr target, error_code error) : target_(std::move(target)), error_(error) {}
    continuation(continuation&&) noexcept = default;
    continuation& operator=(continuation&&) = delete;
    ~continuation()
    {
        // Without memory to post, the waiter keeps its handler.
        if (target_ && target_->is_posted_)
            target_->drop();
    }
    void operator()()
    {
        const ptr kept = std::move(target_);
        kept->invoke_handler(error_);
    }

private:
    ptr target_;
    error_code error_;
};

void waiter::resume(error_code error)
{
    // The waiter may have been resumed before.
    is_posted_ = false;
    if (COLOCK_DEFECT(throwing_callback))
        return asio::dispatch(executor(), continuation(this, error));
    asio::post(executor(), continuation(this, error));
    is_posted_ = true;
}

bool waiter::forget() noexcept
{
    ptr forgotten;
    const std::lock_guard guard(owner_.mutex);
    if (is_waiting())
        forgotten = remove();
    return forgotten != nullptr;
}

void wake_list::add(waiter& next) noexcept
{
    // A closed gate means that all waiters of the context have been resumed before.
    if (const auto& gate = next.owner_.gate(); !gate_ && gate && gate->enter())
        gate_ = gate;
    next.is_woken_by_cancellation = next.is_cancelled;
    woken_.push_back(*next.remove().detach());
}

void core::wake_later(waiter& target) noexcept
{
    const std::lock_guard guard(mutex);
    intrusive_ptr_add_ref(&target);
    late_wakes.waiters.push_back(target);
    suspended.push_back(target);
    timers.schedule(late_wakes, lease_clock::now());
}

void core::assign_cancellation(asio::cancellation_slot slot, const waiter::ptr& target)
{
    if (!slot.is_connected())
        return;
    // The slot may outlive the wait, the coroutine and the core.
    slot.assign([owner = weak_from_this(), target](asio::cancellation_type type) {
        if (type == asio::cancellation_type::none)
            return;
        if (const auto alive = owner.lock())
            alive->cancel_wait(*target);
    });
}

void core::suspend(const waiter::ptr& target, condition& source, std::uint32_t seen, on_close closing)
{
    deferred_actions actions;
    {
        const std::lock_guard guard(mutex);
        const bool is_due = dead || (closing == on_close::end_wait && closed_to_new);
        intrusive_ptr_add_ref(target.get());
        source.waiters.push_back(*target);
        (closing == on_close::end_wait ? suspended_until_closed : suspended).push_back(*target);
        // After the guard is destroyed, another thread may resume the coroutine, whose frame keeps this core alive.
        if (!is_due && source.version == seen)
            return;
        actions.wakes.add(*target);
    }
    actions.run(*this);
}

void core::cancel_wait(waiter& target)
{
    update([&](deferred_actions& actions) {
        target.is_cancelled = true;
        if (target.is_waiting())
            actions.wakes.add(target);
    });
}

} // namespace colock::inline v0::detail
