// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "core/state/core.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace colock::inline v0::detail {

/// Checks for a cancellation that arrived between two suspensions of a coroutine and was only recorded in `state`.
/// \throws boost::system::system_error `operation_aborted`
inline void throw_if_cancelled(const asio::cancellation_state& state)
{
    if (state.cancelled() != asio::cancellation_type::none)
        throw boost::system::system_error(asio::error::operation_aborted);
}

/// Removes a condition from the timers when the coroutine that waits on it ends, for whatever reason.
struct timer_guard
{
    core& self;
    condition& source;

    ~timer_guard()
    {
        self.update([&](deferred_actions& actions) {
            self.timers.schedule(source, lease_clock::time_point::max());
            // Other coroutines that wait on the condition schedule their own times again.
            source.notify(actions.wakes);
        });
    }
};

/// Waits until `is_over()` returns true, or until `deadline`. Ends with an exception if the coroutine was cancelled.
/// The caller's frame keeps `self` and `source` alive.
/// \param is_over called under the mutex, again after each change of `source`. Must return true if nothing wakes the
///   coroutine any more: after the end of the core's context, and with `on_close::end_wait` once the core accepts no
///   new acquires
template <class Predicate>
[[nodiscard]] asio::awaitable<void> wait_until(core& self, condition& source, lease_clock::time_point deadline,
    Predicate is_over, on_close closing = on_close::keep_waiting)
{
    const timer_guard on_exit{self, source};
    for (;;) {
        std::uint32_t seen = 0;
        {
            const std::lock_guard guard(self.mutex);
            if (is_over() || lease_clock::now() >= deadline)
                co_return;
            self.timers.schedule_wait(source, std::min(source.due, deadline));
            seen = source.version;
        }
        throw_if_cancelled(co_await asio::this_coro::cancellation_state);
        co_await self.async_wait(source, seen, closing);
    }
}

} // namespace colock::inline v0::detail
