// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/detail/body.hpp>

#include "core/operations/operation_errors.hpp"
#include "core/operations/operations.hpp"
#include "core/operations/wait_until.hpp"
#include "core/state/abandon.hpp"
#include "core/state/core.hpp"
#include "util/simulation_marks.hpp"
#include "util/strand.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/container/small_vector.hpp>

#include <concepts>
#include <optional>
#include <tuple>

namespace colock::inline v0::detail {

namespace {

/// The locks that protect a body.
using body_locks = boost::container::small_vector<lock_record::ptr, 1>;

/// Returns why the body may not begin, if the lease has ended already. Ends the lease if the context is gone.
std::optional<lost_reason> begin_body(core& self, lock_record& record)
{
    return self.update([&](deferred_actions& actions) {
        auto lost = self.leases.end_if_lost(record, actions);
        if (!lost && self.dead) {
            // Without the context, no timer renews the lease, or cancels the body when the lease ends.
            lost = lost_reason::shutting_down;
            self.end_and_release(record, *lost, actions);
        }
        if (record.current_phase() == phase::held) {
            record.lease_state().plan.begin_body();
            self.leases.reschedule(record);
        }
        return lost;
    });
}

/// Returns why the result of the body is not valid. Returns nothing if the lease was valid until now, or if the body
/// itself ended it.
std::optional<lost_reason> end_body(core& self, lock_record& record)
{
    const auto lost = self.update([&](deferred_actions& actions) {
        record.lease_state().plan.end_body();
        return self.leases.end_if_lost(record, actions);
    });
    return lost == lost_reason::released ? std::nullopt : lost;
}

/// Cancels a body.
struct body_signal
{
    asio::cancellation_signal signal;
    /// The reasons for which the body was cancelled. A reason that applies to several locks, such as a shutdown,
    /// cancels the body once.
    unsigned cancelled_for = 0;

    /// Emits all cancellation types, because a body may accept any of them. A body that has not begun yet accepts
    /// `terminal` only.
    void cancel() { signal.emit(asio::cancellation_type::all); }
};

/// Watches one lock of a body. Cancels the body once for each reason to stop: the stop margin, a shutdown, the end of
/// the lease, and the end of the context. (A cancellation of the caller is passed on by `run_body`.) A body that
/// continues after one of them is cancelled again by the next. Needs no coroutine to wait for the reasons: each wake-up
/// posts the next check to the body's strand.
///
/// Thread safety: `release_references` must be called on the caller's executor; the other functions on the body's
/// strand.
class body_watch final : public suspended_handler
{
public:
    using ptr = boost::intrusive_ptr<body_watch>;
    using list = boost::container::small_vector<ptr, 1>;

    /// \param body cancels the body
    body_watch(std::shared_ptr<core> self, lock_record::ptr record, asio::any_io_executor strand,
        std::shared_ptr<body_signal> body)
        : suspended_handler(*self), core_(std::move(self)), record_(std::move(record)), strand_(std::move(strand)),
          body_(std::move(body))
    {
    }

    /// Cancels the body for each new reason, and waits for the next change.
    void check()
    {
        unsigned reasons = 0;
        bool is_last = false;
        std::uint32_t seen = 0;
        auto closing = on_close::keep_waiting;
        {
            const std::lock_guard guard(core_->mutex);
            reasons = find_reasons();
            is_last = core_->dead;
            // A shutdown ends the leases of held locks, which wakes their watches. If this lease has ended already, the
            // watch must be woken when the locker is closed to new acquires.
            if (record_->end_reason && !core_->closed_to_new)
                closing = on_close::end_wait;
            seen = record_->version;
        }
        for (const unsigned each : {stop_margin, shutdown, loss, no_context}) {
            if ((reasons & ~body_->cancelled_for & each) != 0 && !has_ended_ &&
                !(COLOCK_DEFECT(second_cancellation_lost) && body_->cancelled_for != 0))
            {
                body_->cancelled_for |= each;
                body_->cancel();
            }
        }
        if (has_ended_ || is_last)
            return;
        is_suspended_ = true;
        core_->suspend(ptr(this), *record_, seen, closing);
    }
    /// Stops watching after the body has ended. Returns false if a wake-up is already posted. The caller must then
    /// await `async_last_wake`, because the strand may be destroyed after the call.
    [[nodiscard]] bool stop() noexcept
    {
        has_ended_ = true;
        return !is_suspended_ || remove_if_suspended();
    }
    [[nodiscard]] auto async_last_wake()
    {
        return asio::async_initiate<const asio::deferred_t, void()>(
            [this](auto handler) { on_last_wake_ = std::move(handler); }, asio::deferred);
    }
    /// Stops watching, and releases the references to the locker. Called when the body has ended or is being destroyed.
    void release_references() noexcept
    {
        if (!has_ended_ && is_suspended_)
            static_cast<void>(remove_if_suspended());
        strand_ = nullptr;
        record_ = nullptr;
        core_ = nullptr;
    }

private:
    [[nodiscard]] asio::any_io_executor executor() const override { return strand_; }
    void invoke_handler(error_code /*failure*/) override
    {
        is_suspended_ = false;
        if (!has_ended_)
            check();
        else if (on_last_wake_)
            std::exchange(on_last_wake_, nullptr)();
    }
    void destroy_handler() noexcept override { on_last_wake_ = nullptr; }

    /// Reasons to cancel the body, other than a cancellation of the caller.
    enum reason : unsigned
    {
        stop_margin = 1,
        shutdown = 2,
        loss = 4,
        /// Without a context there is no timer that detects a loss.
        no_context = 8,
    };

    /// Returns the reasons that apply. The mutex must be held.
    [[nodiscard]] unsigned find_reasons() noexcept
    {
        const auto& end_reason = record_->end_reason;
        auto& lease = record_->lease_state();
        if (end_reason && core_->shutdown.ends_leases())
            lease.shutdown_notified = true;
        const bool lost = end_reason && *end_reason != lost_reason::released;
        return (lease.plan.stop_margin_reached() ? stop_margin : 0U) | (lease.shutdown_notified ? shutdown : 0U) |
               (lost ? loss : 0U) | (core_->dead ? no_context : 0U);
    }

    std::shared_ptr<core> core_;
    lock_record::ptr record_;
    asio::any_io_executor strand_;
    const std::shared_ptr<body_signal> body_;
    /// Whether a wake-up may come.
    bool is_suspended_ = false;
    bool has_ended_ = false;
    asio::any_completion_handler<void()> on_last_wake_;
};

/// Releases the locks when the frame is destroyed, even if the body has moved a handle away.
struct release_guard
{
    std::shared_ptr<core> self;
    const body_locks& locks;
    ~release_guard()
    {
        for (const auto& each : locks)
            release_in_background(*self, *each);
    }
};

template <class Held>
asio::awaitable<void> watch_body(body_watch::list watches, body_ref<Held> body, Held& held)
{
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    for (const auto& each : watches)
        each->check();
    std::exception_ptr failure;
    try {
        co_await body.run(body.object, held);
    } catch (...) {
        failure = std::current_exception();
    }
    co_await asio::this_coro::throw_if_cancelled(false);
    for (const auto& each : watches) {
        if (!each->stop())
            co_await each->async_last_wake();
    }
    if (failure)
        std::rethrow_exception(std::move(failure));
}

/// Runs a coroutine as the body, on a strand on which it can be cancelled. Returns its exception.
template <class Held>
asio::awaitable<std::exception_ptr> run_body(
    const std::shared_ptr<core>& self, const body_locks& locks, body_ref<Held> body, Held& held)
{
    const asio::any_io_executor strand = strand_of(co_await asio::this_coro::executor);
    const auto cancelled = std::make_shared<body_signal>();
    struct watch_guard
    {
        body_signal& cancelled;
        body_watch::list watches{};
        ~watch_guard()
        {
            for (const auto& each : watches)
                each->release_references();
            // A watch may outlive its context, but what co_spawn stores in the slot must not.
            cancelled.signal.slot().clear();
        }
    };
    watch_guard on_exit{*cancelled};
    auto& watches = on_exit.watches;
    watches.reserve(locks.size());
    for (const auto& each : locks)
        watches.emplace_back(new body_watch(self, each, strand, cancelled));
    // In a template, GCC 14 does not parse `(co_await cancellation_state).slot()`.
    const asio::cancellation_state callers_state = co_await asio::this_coro::cancellation_state;
    // The caller's slot may outlive the body.
    if (auto callers_slot = callers_state.slot(); callers_slot.is_connected()) {
        callers_slot.assign([weak = std::weak_ptr(cancelled)](asio::cancellation_type type) {
            if (const auto target = weak.lock(); target && type != asio::cancellation_type::none)
                target->cancel();
        });
    }
    auto result = co_await asio::co_spawn(strand, watch_body(watches, body, held),
        asio::bind_cancellation_slot(cancelled->signal.slot(), asio::as_tuple(asio::deferred)));
    co_return std::get<0>(std::move(result));
}

/// Calls a body that is not a coroutine, and therefore cannot be cancelled. Returns its exception.
template <class Held>
std::exception_ptr call_body(body_ref<Held> body, Held& held)
{
    try {
        body.call(body.object, held);
    } catch (...) {
        return std::current_exception();
    }
    return nullptr;
}

/// Releases the locks. Ends early if the caller is cancelled; then the releases continue in the background.
asio::awaitable<void> release_after_body(const std::shared_ptr<core>& self, const body_locks& locks)
{
    for (const auto& each : locks)
        self->update([&](deferred_actions& actions) { self->end_and_release(*each, lost_reason::released, actions); });
    for (const auto& each : locks) {
        std::uint32_t seen = 0;
        while (operations::must_await_release(*self, *each, seen)) {
            if ((co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none)
                co_return;
            co_await self->async_wait(*each, seen, on_close::keep_waiting, asio::as_tuple(asio::deferred));
        }
    }
}

/// Returns why the lease was not renewed: the error of the last renewal, a backend that cannot be reached, or a backend
/// that has not answered. Null if there was no such problem.
failure_ptr renewal_failure(core& self, lock_record& record, lost_reason reason)
{
    if (reason != lost_reason::expired && reason != lost_reason::session)
        return nullptr;
    failure_ptr known;
    bool is_unanswered = false;
    {
        const std::lock_guard guard(self.mutex);
        known = record.lease_state().renewal_error;
        is_unanswered = record.in_flight == operation::extend;
    }
    if (!known)
        known = self.backend->connection_failure();
    if (!known && is_unanswered)
        known = make_failure(errc::outcome_unknown, "the request was not answered", asio::error::timed_out);
    return known;
}

[[noreturn]] void throw_lost(core& self, lock_record& record, lost_reason reason, std::exception_ptr exception)
{
    auto context = context_of(self, record);
    context.reason = reason;
    context.detail = reason == lost_reason::shutting_down
                         ? "the locker was shut down or its execution context is gone, so the body was cancelled; "
                           "make another locker to go on"
                         : std::string("the lease ended before the body did: ") + to_string(reason);
    if (const auto renewal_error = renewal_failure(self, record, reason)) {
        context.cause = renewal_error->cause ? renewal_error->cause : renewal_error->code;
        if (!renewal_error->detail.empty())
            context.detail += ", its renewal failed: " + renewal_error->detail;
    }
    lost_error lost(errc::lost, std::move(context));
    if (!exception)
        throw lost;
    try {
        std::rethrow_exception(std::move(exception));
    } catch (...) {
        std::throw_with_nested(std::move(lost));
    }
}

asio::awaitable<lock> acquire_for_body(const std::shared_ptr<core>& self, std::string key, acquire_options options)
{
    return operations::acquire(
        self, operations::prepare(self, std::move(key), std::move(options), renewal::automatic, true));
}

asio::awaitable<lock_group> acquire_for_body(
    const std::shared_ptr<core>& self, group_members keys, acquire_options options)
{
    options.renewal = options.renewal.value_or(renewal::automatic);
    return operations::acquire_all(self, std::move(keys), std::move(options));
}

asio::awaitable<std::optional<lock>> try_acquire_for_body(
    const std::shared_ptr<core>& self, std::string key, lease_clock::duration within, acquire_options options)
{
    return operations::try_acquire(self, std::move(key), within, std::move(options), renewal::automatic);
}

asio::awaitable<std::optional<lock_group>> try_acquire_for_body(
    const std::shared_ptr<core>& self, group_members keys, lease_clock::duration within, acquire_options options)
{
    options.renewal = options.renewal.value_or(renewal::automatic);
    return operations::try_acquire_all(self, std::move(keys), within, std::move(options));
}

// Returns the records of the locks that were granted. They may differ from the prepared records. They are stored before
// the body runs, because the body may move a handle away.

body_locks locks_of(const lock& handle)
{
    return {lock_record::ptr(&lock_record::from_lock(handle))};
}

body_locks locks_of(const lock_group& group)
{
    body_locks all;
    for (const auto& each : group.locks())
        all.emplace_back(&lock_record::from_lock(each));
    return all;
}

template <class Keys, class Held>
asio::awaitable<bool> run_under_lock(std::shared_ptr<core> self, Keys keys, std::optional<lease_clock::duration> within,
    acquire_options options, body_ref<Held> body)
{
    std::optional<Held> held;
    if constexpr (std::same_as<Held, leadership>)
        held = co_await operations::campaign(self, std::move(keys), std::move(options));
    else if (within)
        held = co_await try_acquire_for_body(self, std::move(keys), *within, std::move(options));
    else
        held = co_await acquire_for_body(self, std::move(keys), std::move(options));
    if (!held)
        co_return false;
    const body_locks locks = locks_of(*held);
    const release_guard on_exit{self, locks};

    for (const auto& each : locks) {
        if (const auto lost = begin_body(*self, *each))
            throw_lost(*self, *each, *lost, nullptr);
    }
    // A cancellation between two awaits is only recorded, and would never reach the body.
    throw_if_cancelled(co_await asio::this_coro::cancellation_state);
    std::exception_ptr failure = body.call ? call_body(body, *held) : co_await run_body(self, locks, body, *held);

    // After a loss, the releases run in the background. A release can take long if the connection is dead, and the
    // caller should be notified at once.
    for (const auto& each : locks) {
        if (const auto lost = end_body(*self, *each))
            throw_lost(*self, *each, *lost, std::move(failure));
    }

    // The effects of the body are kept even if the caller was cancelled meanwhile. In that case the release begins when
    // this frame ends.
    const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() == asio::cancellation_type::none)
        co_await release_after_body(self, locks);
    if (failure)
        std::rethrow_exception(std::move(failure));
    co_return true;
}

} // namespace

asio::awaitable<bool> run_with_lock(std::shared_ptr<core> self, std::string key,
    std::optional<lease_clock::duration> within, acquire_options options, body_ref<lock> body)
{
    return run_under_lock(std::move(self), std::move(key), within, std::move(options), body);
}

asio::awaitable<bool> run_with_lock(std::shared_ptr<core> self, group_members keys,
    std::optional<lease_clock::duration> within, acquire_options options, body_ref<lock_group> body)
{
    return run_under_lock(std::move(self), std::move(keys), within, std::move(options), body);
}

asio::awaitable<bool> operations::run_term(
    std::shared_ptr<core> self, std::string key, acquire_options options, body_ref<leadership> body)
{
    return run_under_lock(std::move(self), std::move(key), std::nullopt, std::move(options), body);
}

} // namespace colock::inline v0::detail
