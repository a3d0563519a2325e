// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/options.hpp>
#include <colock/spi/adapter.hpp>
#include <colock/stats.hpp>

#include "core/policy/answer_times.hpp"
#include "core/policy/lease_plan.hpp"
#include "core/state/deferred_actions.hpp"
#include "core/state/event_dispatcher.hpp"
#include "core/state/key_queues.hpp"
#include "core/state/record.hpp"
#include "core/state/timer_heap.hpp"
#include "core/state/waiter.hpp"
#include "util/no_memory.hpp"

#include <boost/intrusive/list.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

namespace colock::inline v0::detail {

using record_list = boost::intrusive::list<record, boost::intrusive::constant_time_size<false>>;

/// The base class of a core: the state that the parts of the core share. One mutex guards every member that is neither
/// const nor atomic. The mutex is never held while an adapter, an observer or a handler is called, or while anything is
/// destroyed that could own a coroutine.
struct shard
{
    shard(std::shared_ptr<adapter> asked, locker_options chosen)
        : backend(std::move(asked)), can(backend->traits().capabilities), limits(backend->traits().limits),
          options(std::move(chosen)), margins{options.minimum_validity, options.stop_margin},
          watches_all(options.observer || !can.expires), timers(*backend), queues(can.fifo, timers), events(mutex)
    {
    }

    shard(const shard&) = delete;
    shard& operator=(const shard&) = delete;

    /// Whether the adapter ends every operation within the operation timeout. Then the core needs no timer of its own,
    /// and the adapter reports the better reason.
    [[nodiscard]] bool adapter_ends_in_time() const noexcept
    {
        return limits.operation_timeout > limits.operation_timeout.zero() &&
               limits.operation_timeout <= options.operation_timeout;
    }
    [[nodiscard]] lease_clock::time_point answer_deadline(lease_clock::time_point sent) const noexcept
    {
        return adapter_ends_in_time() ? lease_clock::time_point::max()
                                      : saturating_add(sent, options.operation_timeout);
    }

    /// Calls `change(deferred_actions&)` under the mutex, and then carries out the actions. Returns the result of
    /// `change`. The caller must keep the core alive. The mutex must not be held.
    template <class Change>
    auto update(Change&& change)
    {
        deferred_actions actions;
        std::unique_lock guard(mutex);
        const auto run = [&] {
            guard.unlock();
            actions.run(*this);
        };
        if constexpr (std::is_void_v<decltype(change(actions))>) {
            change(actions);
            run();
        } else {
            auto result = change(actions);
            run();
            return result;
        }
    }

    /// Wakes all suspended waiters. The mutex must be held.
    void wake_all_suspended(wake_list& wakes)
    {
        for (waiter_list* each : {&suspended_until_closed, &suspended}) {
            while (!each->empty())
                wakes.add(each->front());
        }
    }

    /// Suspends a waiter again if there was no memory to post its continuation. The timer resumes the waiter.
    void wake_later(waiter& target) noexcept;

    /// Calls the backend for an operation that is in flight for `subject`. If there is no memory for that, the
    /// operation fails as if the backend could not be reached. The mutex must not be held.
    /// \param start called with the backend
    /// \param fail called with the failure
    template <class Start, class Fail>
    void start_request(record& subject, Start start, Fail fail)
    {
        try {
            start(*backend);
        } catch (const std::bad_alloc&) {
            {
                const std::lock_guard guard(mutex);
                // If the backend has answered before it threw, there is no failure to report.
                if (subject.in_flight == operation::none)
                    return;
            }
            fail(no_memory);
        }
    }

    const std::shared_ptr<adapter> backend;
    const capabilities can;
    const adapter_limits limits;
    const locker_options options;
    const lease_plan::margins margins;
    /// Failure for a request that could not be made. Allocated in advance, because no memory may be left then.
    const failure_ptr no_memory = detail::no_memory();
    /// Whether the end of every lease must be detected, because there is an observer, or because the backend ends no
    /// lease itself.
    const bool watches_all;

    light_mutex mutex;
    /// Whether the locker is shutting down, has no handles any more, or has lost its context. Waiters end, and no
    /// acquire begins.
    std::atomic<bool> closed_to_new{false};
    /// Whether the context of the adapter has shut down.
    std::atomic<bool> dead{false};
    /// The suspended waiters: those that end when no acquire may begin any more, and all others.
    waiter_list suspended_until_closed;
    waiter_list suspended;
    /// The condition of waiters that `wake_later` has suspended again.
    condition late_wakes;
    timer_heap timers;
    key_queues queues;
    answer_times answers;
    event_dispatcher events;
    locker_stats stats;
};

} // namespace colock::inline v0::detail
