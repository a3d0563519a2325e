// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/parking.hpp"

#include "core/core.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

namespace colock::detail {

namespace {

using parked_list = boost::intrusive::list_base_hook<auto_unlink>;
using parked_lot = boost::intrusive::list_base_hook<boost::intrusive::tag<all_parked_tag>, auto_unlink>;

} // namespace

void wake_list::add(parked& waiter, error_code why)
{
    auto& in_source = static_cast<parked_list&>(waiter);
    auto& in_lot = static_cast<parked_lot&>(waiter);
    in_source.unlink();
    in_lot.unlink();
    woken_.push_back({std::move(waiter.executor), std::move(waiter.handler), why});
}

void wake_list::resume()
{
    for (auto& each : woken_) {
        asio::post(each.executor, [handler = std::move(each.handler), why = each.why]() mutable {
            // The slot outlives the wait; what it would call refers to this wait's frame.
            if (auto slot = asio::get_associated_cancellation_slot(handler); slot.is_connected())
                slot.clear();
            std::move(handler)(why);
        });
    }
    woken_.clear();
}

void core::suspend(parked& place, std::uint32_t seen)
{
    // Assigned to the erased handler's own slot: the one of the handler inside would be overwritten.
    if (auto slot = asio::get_associated_cancellation_slot(place.handler); slot.is_connected()) {
        slot.assign([this, &place](asio::cancellation_type type) {
            if (type != asio::cancellation_type::none)
                unpark(place);
        });
    }
    work todo;
    {
        const std::lock_guard guard(mutex);
        place.source->waiters.push_back(place);
        (place.ends_when_closed ? suspended_until_closed : suspended).push_back(place);
        const bool ends = dead || (place.ends_when_closed && closed_to_new);
        if (!ends && place.source->version == seen) {
            // From the end of the guard on, another thread may resume the coroutine, which keeps this core.
            return;
        }
        todo.wakes.add(place);
    }
    todo.run(*this);
}

void core::unpark(parked& place)
{
    work todo;
    {
        const std::lock_guard guard(mutex);
        if (static_cast<parked_list&>(place).is_linked())
            todo.wakes.add(place, asio::error::operation_aborted);
    }
    todo.run(*this);
}

void core::discard(parked& place) noexcept
{
    // Destroyed after the guard, because it may own anything.
    asio::any_completion_handler<void(error_code)> discarded;
    const std::lock_guard guard(mutex);
    static_cast<parked_list&>(place).unlink();
    static_cast<parked_lot&>(place).unlink();
    discarded = std::move(place.handler);
}

} // namespace colock::detail
