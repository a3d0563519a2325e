// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/waiter.hpp"

#include "core/state/core.hpp"

#include <boost/asio/error.hpp>

#include <mutex>
#include <new>
#include <utility>

namespace colock::inline v0::detail {

class waiter::continuation
{
public:
    continuation(ptr of, error_code why) : of_(std::move(of)), why_(why) {}
    continuation(continuation&&) noexcept = default;
    continuation& operator=(continuation&&) = delete;
    ~continuation()
    {
        // If the post fails, the mutex of a registry is held, so the handler must not be destroyed here.
        if (of_ && of_->is_posted_)
            of_->drop();
    }
    void operator()()
    {
        const ptr kept = std::move(of_);
        kept->invoke_handler(why_);
    }

private:
    ptr of_;
    error_code why_;
};

void waiter::resume(error_code why)
{
    complete([&] {
        is_posted_ = false;
        asio::post(executor(), continuation(this, why));
        is_posted_ = true;
    });
}

void waiter::forget() noexcept
{
    owner_.forget(*this);
}

void shard::wake_later(waiter& suspended_again) noexcept
{
    const std::lock_guard guard(mutex);
    intrusive_ptr_add_ref(&suspended_again);
    late_wakes.waiters.push_back(suspended_again);
    suspended.push_back(suspended_again);
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

void core::suspend(const waiter::ptr& target, const asio::any_io_executor& executor, condition& source,
    wait_state& suspension, std::uint32_t seen)
{
    if (!target->enroll(registry_of(executor)))
        return;
    deferred_actions actions;
    {
        const std::lock_guard guard(mutex);
        intrusive_ptr_add_ref(target.get());
        source.waiters.push_back(*target);
        (suspension.ends_when_closed ? suspended_until_closed : suspended).push_back(*target);
        const bool has_shut_down_since = dead && !std::exchange(suspension.saw_shutdown, true);
        if (!target->is_cancelled && !has_shut_down_since && !(suspension.ends_when_closed && closed_to_new) &&
            source.version == seen)
        {
            // After the guard is destroyed, another thread may resume the coroutine, whose frame keeps this core alive.
            return;
        }
        actions.wakes.add(*target);
    }
    actions.run(*this);
}

std::shared_ptr<handler_registry> core::registry_of(const asio::any_io_executor& executor) const
{
    // The address of a destroyed context may be reused by another one.
    auto& context = context_of(executor);
    return !dead && &context == context_ ? registry_ : handler_registry::of(executor);
}

void core::cancel_wait(waiter& target)
{
    deferred_actions actions;
    {
        const std::lock_guard guard(mutex);
        target.is_cancelled = true;
        if (target.is_waiting())
            actions.wakes.add(target);
    }
    actions.run(*this);
}

void core::discard(wait_state& suspension) noexcept
{
    if (const auto wait = std::exchange(suspension.wait, nullptr)) {
        forget(*wait);
        wait->discard();
    }
}

void core::forget(waiter& target) noexcept
{
    waiter::ptr forgotten;
    const std::lock_guard guard(mutex);
    if (target.is_waiting())
        forgotten = target.remove();
}

} // namespace colock::inline v0::detail
