// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/context_gate.hpp>
#include <colock/error.hpp>

#include "core/state/suspended_handler.hpp"

#include <boost/asio/error.hpp>

#include <memory>
#include <new>
#include <utility>

namespace colock::inline v0::detail {

/// Suspended handlers that were removed from the lists under the mutex of the core, and are resumed after the mutex is
/// released. Keeps the core's context from being destroyed meanwhile.
class wake_list
{
public:
    wake_list() = default;
    wake_list(const wake_list&) = delete;
    wake_list& operator=(const wake_list&) = delete;
    ~wake_list()
    {
        while (!woken_.empty())
            take_front();
        leave_gate();
    }

    /// Removes a handler from the lists of its condition and of the core, and adds it to this list. The mutex must be
    /// held.
    void add(suspended_handler& next) noexcept;
    /// Posts each handler to its executor.
    /// \param failed called for each handler that could not be posted, because there was no memory
    template <class Failed>
    void resume(Failed failed)
    {
        while (!woken_.empty()) {
            const suspended_handler::ptr next = take_front();
            try {
                next->resume(next->is_woken_by_cancellation ? asio::error::operation_aborted : error_code());
            } catch (const std::bad_alloc&) {
                failed(*next);
            }
        }
        leave_gate();
    }
    [[nodiscard]] bool empty() const noexcept { return woken_.empty(); }

private:
    suspended_handler::ptr take_front() noexcept
    {
        suspended_handler& next = woken_.front();
        woken_.pop_front();
        return {&next, false};
    }
    void leave_gate() noexcept
    {
        if (const auto entered = std::exchange(gate_, nullptr))
            entered->leave();
    }

    /// Owns a reference to each handler. The hook is free, because a handler in this list is in no other list.
    suspended_handler::list woken_;
    /// The gate of the core's context, while this object has entered it.
    std::shared_ptr<context_gate> gate_;
};

} // namespace colock::inline v0::detail
