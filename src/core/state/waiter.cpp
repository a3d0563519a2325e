// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/waiter.hpp"

#include "core/state/core.hpp"

#include <boost/asio/error.hpp>

#include <mutex>
#include <new>
#include <utility>

namespace colock::detail {

class waiter::continuation
{
public:
    continuation(ptr of, error_code why) : of_(std::move(of)), why_(why) {}
    continuation(continuation&&) noexcept = default;
    continuation& operator=(continuation&&) = delete;
    ~continuation()
    {
        // A registry's mutex is held while it is posted.
        if (of_ && of_->is_posted_)
            of_->drop();
    }
    void operator()()
    {
        const ptr kept = std::move(of_);
        kept->go_on(why_);
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
    try {
        timers.schedule(late_wakes, lease_clock::now());
    } catch (const std::bad_alloc&) {
        // It is due whenever the timer turns next.
    }
}

void core::cancel_by(asio::cancellation_slot slot, const waiter::ptr& place)
{
    if (!slot.is_connected())
        return;
    // The slot may outlive the wait, the coroutine and the core.
    slot.assign([owner = weak_from_this(), place](asio::cancellation_type type) {
        if (type == asio::cancellation_type::none)
            return;
        if (const auto alive = owner.lock())
            alive->unpark(*place);
    });
}

void core::suspend(const waiter::ptr& place, const asio::any_io_executor& executor, condition& source, wait_state& how,
    std::uint32_t seen)
{
    if (!place->enroll(registry_of(executor)))
        return;
    deferred_actions actions;
    {
        const std::lock_guard guard(mutex);
        intrusive_ptr_add_ref(place.get());
        source.waiters.push_back(*place);
        (how.ends_when_closed ? suspended_until_closed : suspended).push_back(*place);
        const bool has_shut_down_since = dead && !std::exchange(how.saw_shutdown, true);
        if (!place->is_cancelled && !has_shut_down_since && !(how.ends_when_closed && closed_to_new) &&
            source.version == seen)
        {
            // From the end of the guard on, another thread may resume the coroutine, which keeps this core.
            return;
        }
        actions.wakes.add(*place);
    }
    actions.run(*this);
}

std::shared_ptr<handler_registry> core::registry_of(const asio::any_io_executor& executor) const
{
    // The address of a context that is gone may be that of another one.
    auto& context = context_of(executor);
    return !dead && &context == context_ ? registry_ : handler_registry::of(executor);
}

void core::unpark(waiter& place)
{
    deferred_actions actions;
    {
        const std::lock_guard guard(mutex);
        place.is_cancelled = true;
        if (place.is_waiting())
            actions.wakes.add(place);
    }
    actions.run(*this);
}

void core::discard(wait_state& place) noexcept
{
    if (const auto wait = std::exchange(place.wait, nullptr)) {
        forget(*wait);
        wait->discard();
    }
}

void core::forget(waiter& place) noexcept
{
    waiter::ptr forgotten;
    const std::lock_guard guard(mutex);
    if (place.is_waiting())
        forgotten = place.take_out();
}

} // namespace colock::detail
