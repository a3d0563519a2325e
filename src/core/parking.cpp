// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/parking.hpp"

#include "core/core.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

namespace colock::detail {

asio::cancellation_slot waiter::cancellation_slot() const
{
    return asio::get_associated_cancellation_slot(handler_);
}

waiter::ptr waiter::take_out() noexcept
{
    source_hook::unlink();
    parked_hook::unlink();
    return {this, false};
}

void waiter::resume(error_code why)
{
    complete([&] {
        asio::post(std::exchange(executor_, nullptr), [handler = std::move(handler_), why]() mutable {
            // The slot outlives the wait.
            if (auto slot = asio::get_associated_cancellation_slot(handler); slot.is_connected())
                slot.clear();
            std::move(handler)(why);
        });
    });
}

void waiter::discard() noexcept
{
    // Destroyed without the registry's mutex, because the handler may own anything.
    asio::any_completion_handler<void(error_code)> discarded;
    asio::any_io_executor executor;
    complete([&] {
        discarded = std::move(handler_);
        executor = std::exchange(executor_, nullptr);
    });
}

void waiter::abandon() noexcept
{
    owner_.forget(*this);
    // Destroys the coroutine's frame, or posts that to its context, and with it what keeps the core.
    handler_ = nullptr;
    executor_ = nullptr;
}

void core::suspend(const waiter::ptr& place, waitable& source, const parked& how, std::uint32_t seen)
{
    // Assigned to the erased handler's own slot: the one of the handler inside would be overwritten. The slot may
    // outlive the wait, the coroutine and the core.
    if (auto slot = place->cancellation_slot(); slot.is_connected()) {
        slot.assign([owner = weak_from_this(), place](asio::cancellation_type type) {
            if (type == asio::cancellation_type::none)
                return;
            if (const auto alive = owner.lock())
                alive->unpark(*place);
        });
    }
    if (!place->enroll(registry_of(place->executor())))
        return;
    work todo;
    {
        const std::lock_guard guard(mutex);
        intrusive_ptr_add_ref(place.get());
        source.waiters.push_back(*place);
        (how.ends_when_closed ? suspended_until_closed : suspended).push_back(*place);
        if (!(how.ends_when_closed && closed_to_new) && source.version == seen) {
            // From the end of the guard on, another thread may resume the coroutine, which keeps this core.
            return;
        }
        todo.wakes.add(*place);
    }
    todo.run(*this);
}

std::shared_ptr<handler_registry> core::registry_of(const asio::any_io_executor& executor) const
{
    // The address of a context that is gone may be that of another one.
    auto& context = context_of(executor);
    return !dead && &context == context_ ? registry_ : handler_registry::of(context);
}

void core::unpark(waiter& place)
{
    work todo;
    {
        const std::lock_guard guard(mutex);
        if (place.is_parked())
            todo.wakes.add(place, asio::error::operation_aborted);
    }
    todo.run(*this);
}

void core::discard(parked& place) noexcept
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
    if (place.is_parked())
        forgotten = place.take_out();
}

} // namespace colock::detail
