// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/leadership.hpp>
#include <colock/lock.hpp>
#include <colock/lock_group.hpp>
#include <colock/options.hpp>
#include <colock/spi/adapter.hpp>
#include <colock/spi/context_member.hpp>
#include <colock/stats.hpp>

#include "core/policy/answer_times.hpp"
#include "core/policy/lease_plan.hpp"
#include "core/state/deferred_actions.hpp"
#include "core/state/event_dispatcher.hpp"
#include "core/state/key_queues.hpp"
#include "core/state/lease_table.hpp"
#include "core/state/lock_record.hpp"
#include "core/state/pending_releases.hpp"
#include "core/state/shutdown_notifier.hpp"
#include "core/state/suspended_handler.hpp"
#include "core/state/timer_queue.hpp"
#include "util/no_memory.hpp"

#include <boost/asio/append.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/intrusive/list.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace colock::inline v0::detail {

/// The shared state of a locker: its local queues, its leases with their one timer, and the releases that
/// are not proven yet. The operations on this state are in operations.hpp.
///
/// Thread safety: one mutex guards every member that is neither const nor atomic. A function that must be called with
/// the mutex held says so. The mutex is never held while an adapter, an observer or a handler is called, or while
/// anything is destroyed that could own a coroutine.
class core final : public context_member,
                   public session_lease::watcher,
                   public contact_watcher,
                   public std::enable_shared_from_this<core>
{
public:
    using time_point = lease_clock::time_point;

    /// \throws validation_error
    [[nodiscard]] static std::shared_ptr<core> make(std::shared_ptr<adapter> backend, locker_options options);
    core(std::shared_ptr<adapter> adapter, locker_options requested_options);
    core(const core&) = delete;
    core& operator=(const core&) = delete;

    [[nodiscard]] asio::any_io_executor executor() const { return backend->executor(); }
    [[nodiscard]] std::string backend_name() const { return std::string(backend->traits().name); }
    /// No answer will arrive any more: the adapter's context has shut down, and this backend does not answer inside the
    /// call.
    [[nodiscard]] bool is_backend_gone() const noexcept { return dead && !can.immediate; }

    /// Whether the adapter ends every operation within the operation timeout. The core then needs no timer of its
    /// own, and the adapter's error is more exact.
    [[nodiscard]] bool adapter_ends_in_time() const noexcept
    {
        return limits.operation_timeout > limits.operation_timeout.zero() &&
               limits.operation_timeout <= options.operation_timeout;
    }
    [[nodiscard]] lease_clock::time_point answer_deadline(lease_clock::time_point sent_at) const noexcept
    {
        return adapter_ends_in_time() ? lease_clock::time_point::max()
                                      : saturating_add(sent_at, options.operation_timeout);
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
            // Skipped in the most common case, an uncontended lock in memory: there is nothing to carry out.
            if (options.observer || !actions.empty())
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

    /// Wakes all suspended handlers. The mutex must be held.
    void wake_all_suspended(wake_list& wakes)
    {
        for (suspended_handler::list* each : {&suspended_until_closed, &suspended}) {
            while (!each->empty())
                wakes.add(each->front());
        }
    }

    /// Suspends a handler again that could not be posted, because there was no memory. The timer resumes it.
    void wake_later(suspended_handler& target) noexcept;

    /// Calls `start(*backend)`, which sends the request of `record.in_flight`. If there is no memory for that, calls
    /// `fail(failure)`: the operation fails as if the backend could not be reached. The mutex must not be held.
    template <class Start, class Fail>
    void start_request(lock_record& record, Start start, Fail fail)
    {
        try {
            start(*backend);
        } catch (const std::bad_alloc&) {
            {
                const std::lock_guard guard(mutex);
                // If the backend has answered before it threw, there is no failure to report.
                if (record.in_flight == operation::none)
                    return;
            }
            fail(no_memory);
        }
    }

    /// Updates the statistics when an acquire that began at `started` has ended its wait. The mutex must be held.
    void count_end_of_wait(time_point started);

    /// Must be called when an operation has failed. Warns the observer if the backend refuses such requests. Sets
    /// `failure` if the adapter has reported none.
    void complete_failure(failure_ptr& failure) const;

    // Reports of the adapter. They arrive through the record, which the caller keeps alive.
    void on_created(lock_record& record, create_outcome&& outcome);
    /// Called when the create was part of a batch that was refused: nothing has changed for `record`.
    /// \param busy the answer, if the key of `record` is the busy one; else null
    void on_refused(lock_record& record, create_outcome* busy);
    void on_released(lock_record& record, release_outcome&& outcome);
    void on_handed_over(lock_record& holder, lock_record& next, hand_over_outcome&& outcome);
    void on_extended(const lock_record::ptr& record, extend_outcome outcome);
    /// \param result where the outcome is stored for the caller; null if the core itself has sent the query
    void on_queried(lock_record& record, valid_outcome&& outcome, std::optional<valid_outcome>* result);
    void on_woken(const lock_record::ptr& record, std::uint32_t wait_number);
    void declare_lost(const lock_record::ptr& record, lost_reason reason);

    // Transitions, defined in transitions.cpp. No other function changes the phase of a record. The mutex must be held.
    /// Grants the lock to `record`, which acquires.
    void grant(lock_record& record, std::uint64_t fence, deferred_actions& actions);
    /// Makes a held lock of a group available to the caller, because all locks of the group are held now. The requested
    /// options apply from now on.
    void complete_grant(lock_record& record, bool renews, std::chrono::milliseconds max_hold, time_point now);
    /// Passes an answer that is no usable grant to the acquiring coroutine. The record stays in its local queue.
    static void deliver_answer(lock_record& record, create_outcome&& answer, deferred_actions& actions);
    /// Gives up an acquire, if it is still acquiring. A grant, or a place in a queue, that it has or may still get is
    /// released.
    void abandon(lock_record& record, deferred_actions& actions);
    /// Ends a lease, and begins to release the lock. Has no effect if the lock is not held.
    /// \returns whether the lock was held
    bool end_and_release(lock_record& record, lost_reason reason, deferred_actions& actions);
    /// Ends the lease of an exported lock without a release: the process that adopts the ticket becomes the holder.
    void detach(lock_record& record, deferred_actions& actions);
    /// Ends a claim that was to be released.
    /// \param proven it is certain that the backend keeps nothing of the claim
    void finish(lock_record& record, bool proven, deferred_actions& actions);

    void on_session_ended(const session_lease& session) noexcept override;
    void on_contact_lost() noexcept override;
    void on_contact_regained() noexcept override;
    void context_shutdown() noexcept override;

    /// Suspends until `source` changes. Completes at once if `source` has changed since `seen`, or if the adapter's
    /// context has shut down. The caller's frame keeps `source` and the core alive.
    template <class CompletionToken = asio::deferred_t>
    [[nodiscard]] auto async_wait(condition& source, std::uint32_t seen, on_close closing = on_close::keep_waiting,
        const CompletionToken& completion_token = {})
    {
        return asio::async_initiate<const CompletionToken, void(error_code)>(
            [](auto handler, core* self, condition* awaited, std::uint32_t version, on_close policy) {
                suspended_handler::ptr target;
                const auto slot = asio::get_associated_cancellation_slot(handler);
                try {
                    target.reset(new typed_suspended_handler<decltype(handler)>(*self, std::move(handler)));
                } catch (const std::bad_alloc&) {
                    // Only the allocation throws, so the handler was not moved from. If the exception were rethrown, it
                    // would leave run(), and the coroutine would remain suspended.
                    const auto executor = asio::get_associated_executor(handler);
                    asio::post(executor,
                        asio::append(std::move(handler), make_error_code(boost::system::errc::not_enough_memory)));
                    return;
                }
                self->assign_cancellation(slot, target);
                self->suspend(target, *awaited, version, policy);
            },
            completion_token, this, &source, seen, closing);
    }

    /// Suspends `target` until `source` changes, as `async_wait` does.
    void suspend(const suspended_handler::ptr& target, condition& source, std::uint32_t seen, on_close closing);
    /// Posts to the adapter's executor, unless its context has shut down.
    /// \returns whether the function was posted
    template <class Function>
    bool post_to_context(Function function)
    {
        const auto gate = gate_;
        bool is_posted = false;
        const auto post = [&] {
            if (const auto to = executor()) {
                asio::post(to, std::move(function));
                is_posted = true;
            }
        };
        return gate && gate->if_open(post) && is_posted;
    }
    /// The gate of the adapter's context; null if the context had shut down before the locker was made.
    [[nodiscard]] const std::shared_ptr<context_gate>& gate() const noexcept { return gate_; }

    /// \param by_id the group was made for an id, so it also concerns locks of other handles
    [[nodiscard]] static lock_group make_group(
        std::shared_ptr<core> self, std::string id, std::vector<lock> locks, bool by_id = false)
    {
        lock_group group;
        group.core_ = std::move(self);
        group.id_ = std::move(id);
        group.locks_ = std::move(locks);
        group.by_id_ = by_id;
        return group;
    }
    [[nodiscard]] static leadership make_leadership(lock&& elected) noexcept { return leadership(std::move(elected)); }

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
    /// The suspended handlers whose waits end when no acquire may begin any more.
    suspended_handler::list suspended_until_closed;
    /// The other suspended handlers.
    suspended_handler::list suspended;
    /// The condition of the handlers that `wake_later` has suspended again.
    condition late_wakes;
    timer_queue timers;
    key_queues queues;
    answer_times answers;
    event_dispatcher events;
    locker_stats stats;
    const std::shared_ptr<const owner_data> default_owner;

    /// Number of acquires that may have to wait. A shutdown waits for them.
    std::atomic<unsigned> acquire_count{0};
    /// Number of acquires whose create the backend is executing inside the call. A shutdown waits for them.
    std::atomic<unsigned> immediate_creates{0};
    /// The backend was notified that this locker does not need it any more.
    bool has_left_backend = false;
    pending_releases releases{*this};
    lease_table leases{*this};
    shutdown_notifier shutdown{*this};
    /// Single attempts in flight. They are in no queue.
    record_list unqueued_acquires;
    /// Condition of the groups that pause after a failed attempt.
    condition group_pause;

private:
    void end_lease(lock_record& record, lost_reason reason, deferred_actions& actions);
    /// Records how long the backend took to answer a create. Returns the current time. The mutex must be held.
    time_point note_answer_time(lock_record& record, create_status answer) noexcept;
    void on_timer();
    /// Called by the timer queue when nothing is scheduled any more.
    void disarm_unused_timer();
    /// Assigns to `slot`, which may be empty, a function that cancels the wait of `target`, which is resumed
    /// with `operation_aborted`.
    void assign_cancellation(asio::cancellation_slot slot, const suspended_handler::ptr& target);
    void cancel_wait(suspended_handler& target);

    std::shared_ptr<context_gate> gate_;
};

} // namespace colock::inline v0::detail
