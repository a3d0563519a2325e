// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/lock.hpp>
#include <colock/lock_group.hpp>
#include <colock/options.hpp>
#include <colock/spi/adapter.hpp>
#include <colock/spi/context_member.hpp>
#include <colock/stats.hpp>

#include "core/state/cleanup_queue.hpp"
#include "core/state/deferred_actions.hpp"
#include "core/state/lease_table.hpp"
#include "core/state/record.hpp"
#include "core/state/shard.hpp"
#include "core/state/shutdown_notifier.hpp"
#include "core/state/waiter.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/intrusive/list.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace colock::detail {

/// The shared state of a locker: its local queues, its leases with their one timer, and the clean-up of what callers
/// have left behind. What lockers, locks and groups do with it is in verbs.hpp.
///
/// Thread safety: all of it that is neither const nor atomic is guarded by the shard's mutex; what has to be called
/// with the mutex held says so.
class core final : public shard,
                   public context_member,
                   public session_bound::watcher,
                   public contact_watcher,
                   public std::enable_shared_from_this<core>
{
public:
    using time_point = lease_clock::time_point;

    /// \throws validation_error
    [[nodiscard]] static std::shared_ptr<core> make(std::shared_ptr<adapter> backend, locker_options options);
    core(std::shared_ptr<adapter> asked, locker_options chosen);

    [[nodiscard]] asio::any_io_executor executor() const { return backend->executor(); }
    [[nodiscard]] std::string backend_name() const { return std::string(backend->name()); }
    /// No answer will come: the context is gone on which the backend answers.
    [[nodiscard]] bool is_backend_gone() const noexcept { return dead && !can.immediate; }

    // What the adapter tells, through the record, which the caller keeps.
    void on_created(record& wanted, create_outcome&& outcome);
    /// It was asked for together with others, which were refused: nothing has changed for it.
    /// \param busy the answer, if it is the one whose key is busy; else null
    void on_refused(record& wanted, create_outcome* busy);
    void on_given_back(record& ending, release_outcome&& outcome);
    void on_handed_over(record& ending, record& next, hand_over_outcome&& outcome);
    void on_extended(const record::ptr& held, extend_outcome outcome);
    /// \param result where the caller that asked finds the outcome; null: the core has asked.
    void on_checked(record& held, valid_outcome&& outcome, std::optional<valid_outcome>* result);
    void on_woken(const record::ptr& waiting, std::uint32_t wait_number);
    void declare_lost(const record::ptr& held, lost_reason reason);

    void on_session_ended(const session_bound& session) noexcept override;
    void on_contact_lost() noexcept override;
    void on_contact_regained() noexcept override;
    void context_shutdown() noexcept override;
    void context_forked() noexcept override;

    /// Suspends until `source` changes. Completes at once if `source` has changed since `seen`. The caller's frame
    /// keeps `source` and the core. The caller must check `dead` before: the shutdown of the adapter's context resumes
    /// all waiters once, and no timer resumes them afterwards.
    template <class CompletionToken = asio::deferred_t>
    [[nodiscard]] auto async_wait(
        condition& source, wait_state& place, std::uint32_t seen, const CompletionToken& completion_token = {})
    {
        return asio::async_initiate<const CompletionToken, void(error_code)>(
            [](auto handler, core* self, condition* where, wait_state* how, std::uint32_t version) {
                const asio::any_io_executor executor = asio::get_associated_executor(handler);
                const auto slot = asio::get_associated_cancellation_slot(handler);
                const waiter::ptr waiting(new waiter_with<decltype(handler)>(*self, std::move(handler)));
                how->wait = waiting;
                self->cancel_by(slot, waiting);
                self->suspend(waiting, executor, *where, *how, version);
            },
            completion_token, this, &source, &place, seen);
    }

    /// Lets `slot`, which may be empty, cancel `place`: it is resumed with `operation_aborted`, now or when it is
    /// suspended next.
    void cancel_by(asio::cancellation_slot slot, const waiter::ptr& place);
    /// Suspends `place` until `source` changes, as `park` does.
    /// \param executor of its handler
    void suspend(const waiter::ptr& place, const asio::any_io_executor& executor, condition& source, wait_state& how,
        std::uint32_t seen);
    /// Ends a wait, if it has not ended yet, and destroys its handler without a call.
    void discard(wait_state& place) noexcept;
    /// The context of a coroutine that is suspended here shuts down: it is resumed no more.
    void forget(waiter& place) noexcept;
    /// Posts to the adapter's executor, unless its context has shut down.
    /// \return whether it was posted.
    template <class Function>
    bool post_to_context(Function function)
    {
        return registry_ && registry_->if_open([&] { asio::post(executor(), std::move(function)); });
    }

    /// The mutex is held; `wanted` has not been granted.
    void stop_trying(record& wanted);
    /// To a shutdown that waits: something that it waits for may have ended.
    void tell_drained();

    /// What is inside the public handles.
    struct handles;

    const std::shared_ptr<const owner_data> default_owner;

    /// Coroutines that acquire and may have to wait.
    std::atomic<unsigned> acquiring{0};
    /// Those whose create is being carried out inside the call that another thread has made.
    std::atomic<unsigned> granting_at_once{0};
    /// The backend was told that this locker needs it no more.
    bool detached = false;
    cleanup_queue cleanup{*this};
    lease_table leases{*this, cleanup};
    shutdown_notifier notifier{*this, leases, cleanup};
    /// Single attempts that are under way; they stand in no queue.
    record_list single_attempts;
    /// Of quick releases: while their backend is being asked, their records are in neither list. The threads that ask
    /// keep the core, and end them without the mutex.
    unsigned quick_releases_begun = 0;
    std::atomic<unsigned> quick_releases_ended{0};
    /// Groups that pause after a failed attempt.
    plain_condition pausing;

private:
    /// \return the time that it is now. The mutex is held.
    time_point note_answer_time(record& asked, create_status answer) noexcept;
    void on_timer();
    void on_timer_unused();
    void unpark(waiter& place);
    [[nodiscard]] std::shared_ptr<handler_registry> registry_of(const asio::any_io_executor& executor) const;

    /// The adapter's context and its registry; null without one.
    const asio::execution_context* context_ = nullptr;
    std::shared_ptr<handler_registry> registry_;
};

} // namespace colock::detail
