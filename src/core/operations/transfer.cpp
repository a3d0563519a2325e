// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/acquire_guard.hpp"
#include "core/operations/acquire_step.hpp"
#include "core/operations/held_operation.hpp"
#include "core/operations/operation_errors.hpp"
#include "core/operations/operations.hpp"
#include "core/operations/wait_until.hpp"
#include "core/policy/ticket.hpp"
#include "core/policy/validation.hpp"
#include "core/state/core.hpp"

#include <boost/asio/this_coro.hpp>

#include <exception>
#include <optional>

namespace colock::inline v0::detail::operations {

using namespace std::chrono_literals;

namespace {

void check_tickets_supported(const core& self, std::string key)
{
    if (!self.can.tickets) {
        throw validation_error(
            errc::unsupported, {.key = std::move(key),
                                   .backend = self.backend_name(),
                                   .detail = self.backend_name() + " cannot move locks to another process"});
    }
}

[[noreturn]] void throw_not_held(
    const core& self, const lock_record& record, lease_clock::time_point began, lost_reason reason)
{
    auto context = context_of_held(self, record, began, 0);
    context.detail = lease_end_text(reason);
    throw error(errc::not_held, std::move(context));
}

/// Whether a request of the lock is unanswered. Such a request could arrive after the lock was adopted.
bool has_unanswered_request(const lock_record& record)
{
    return record.in_doubt() || record.release_in_doubt() || record.late_ttl() != std::chrono::milliseconds::max();
}

/// Blocks other operations on the lock until `end_detach`, so that a ticket can be made. Returns false, without any
/// effect, if an operation in flight must end first.
/// \param began when the call began
bool begin_detach(core& self, const lock_record::ptr& record, lease_clock::time_point began, std::uint32_t& seen)
{
    std::unique_lock guard(self.mutex);
    if (self.is_backend_gone()) {
        guard.unlock();
        throw error(errc::shutting_down, context_of_held(self, *record, began, 0));
    }
    if (record->current_phase() != phase::held) {
        const auto reason = record->end_reason.value_or(lost_reason::released);
        guard.unlock();
        throw_not_held(self, *record, began, reason);
    }
    if (const auto now = lease_clock::now(); record->lease().has_ended(now)) {
        guard.unlock();
        const auto reason = lease_table::end_reason_of(*record, now);
        self.declare_lost(record, reason);
        throw_not_held(self, *record, began, reason);
    }
    seen = record->version;
    if (record->in_flight != operation::none)
        return false;
    if (has_unanswered_request(*record)) {
        guard.unlock();
        auto context = context_of_held(self, *record, began, 0);
        context.detail = "a request for the lock is unanswered and may still be executed; release the lock instead";
        throw error(errc::outcome_unknown, std::move(context));
    }
    record->in_flight = operation::query;
    return true;
}

/// Completes a detach: with a ticket, this locker does not hold the lock any more; without one, it still does. The
/// mutex must be held. Returns the reason if the lease was lost meanwhile.
std::optional<lost_reason> end_detach(core& self, lock_record& record, bool has_ticket, deferred_actions& actions)
{
    const bool is_lost = record.lease().has_ended(lease_clock::now());
    if (has_ticket && record.current_phase() == phase::held && !is_lost) {
        record.end_operation_in_flight();
        self.detach(record, actions);
        return std::nullopt;
    }
    self.leases.on_queried(record, is_lost, actions);
    return record.current_phase() == phase::held ? std::nullopt : record.end_reason;
}

/// The export of a ticket. Other operations on the lock wait until the backend has answered and `finish` was called.
class ticket_export
{
public:
    ticket_export(std::shared_ptr<core> self, lock_record::ptr record)
        : core_(std::move(self)), record_(std::move(record)), state_(std::make_shared<state>())
    {
    }
    ticket_export(const ticket_export&) = delete;
    ticket_export& operator=(const ticket_export&) = delete;
    ~ticket_export()
    {
        if (is_started_)
            static_cast<void>(finish(false));
    }

    /// \pre `begin_detach` has returned true
    void start()
    {
        is_started_ = true;
        const auto answered = [record = record_, state = state_](export_outcome outcome) {
            if (const pinned_core alive{*record})
                on_exported(*alive, *record, *state, std::move(outcome));
        };
        core_->start_request(
            *record_, [&](adapter& backend) { backend.start_export(record_, answered); },
            [&](const failure_ptr& failure) { answered({.error = failure}); });
    }
    /// Guarded by the mutex of the core.
    [[nodiscard]] const std::optional<export_outcome>& outcome() const noexcept { return state_->outcome; }
    /// Returns the answer of the backend. An answer that comes later is ignored.
    [[nodiscard]] std::optional<export_outcome> take_outcome()
    {
        const std::lock_guard guard(core_->mutex);
        state_->is_abandoned = !state_->outcome;
        return state_->outcome;
    }
    /// Returns why the lock is not held any more, if so.
    [[nodiscard]] std::optional<lost_reason> end_reason() const
    {
        const std::lock_guard guard(core_->mutex);
        return record_->current_phase() == phase::held ? std::nullopt : record_->end_reason;
    }
    /// To be called once. Returns the reason if the lease was lost meanwhile.
    [[nodiscard]] std::optional<lost_reason> finish(bool has_ticket)
    {
        is_started_ = false;
        return core_->update([&](deferred_actions& actions) {
            state_->is_abandoned = !state_->outcome;
            return state_->outcome ? end_detach(*core_, *record_, has_ticket, actions) : std::nullopt;
        });
    }

private:
    /// Guarded by the mutex of the core.
    struct state
    {
        std::optional<export_outcome> outcome{};
        bool is_abandoned = false;
    };

    static void on_exported(core& self, lock_record& record, state& result, export_outcome&& outcome)
    {
        if (outcome.error)
            self.complete_failure(outcome.error);
        self.update([&](deferred_actions& actions) {
            if (result.is_abandoned) {
                static_cast<void>(end_detach(self, record, false, actions));
            } else {
                result.outcome = std::move(outcome);
                record.notify(actions.wakes);
            }
        });
    }

    const std::shared_ptr<core> core_;
    const lock_record::ptr record_;
    const std::shared_ptr<state> state_;
    bool is_started_ = false;
};

} // namespace

asio::awaitable<std::string> detach(std::shared_ptr<core> self, lock_record::ptr record)
{
    check_tickets_supported(*self, record->key());
    const auto began = lease_clock::now();
    ticket_export exporting(self, record);
    std::uint32_t seen = 0;
    // A renewal or an extend may be in flight.
    while (!begin_detach(*self, record, began, seen))
        co_await self->async_wait(*record, seen);
    exporting.start();
    const auto until = self->answer_deadline(lease_clock::now());
    while (must_await_result(*self, *record, exporting.outcome(), until, seen))
        co_await self->async_wait(*record, seen);
    const auto outcome = exporting.take_outcome();
    if (const auto lost = exporting.end_reason())
        throw_not_held(*self, *record, began, *lost);
    if (!outcome || outcome->error)
        throw_unanswered(
            *self, outcome ? outcome->error : nullptr, effect::none, context_of_held(*self, *record, began, 1));
    auto ticket = to_ticket({.backend = self->backend_name(),
        .key = record->key(),
        .group = record->owner().group,
        .mode = record->mode(),
        .max_holders = record->max_holders(),
        .ttl = record->ttl(),
        .backend_ticket = outcome->ticket});
    if (const auto lost = exporting.finish(true))
        throw_not_held(*self, *record, began, *lost);
    co_return ticket;
}

namespace {

/// The data of the ticket take precedence over the options, except for the TTL.
lock_record::ptr prepare_adoption(
    const std::shared_ptr<core>& self, ticket_content&& content, acquire_options&& options)
{
    options.mode = content.mode;
    options.max_holders = content.max_holders;
    options.ttl = options.ttl.value_or(content.ttl);
    options.retry = {};
    auto record = prepare(self, std::move(content.key), std::move(options), renewal::manual, false, content.group);
    return record;
}

ticket_content read_ticket(const core& self, std::string_view ticket)
{
    const auto refuse = [&](std::string text) {
        throw validation_error(errc::invalid_options, {.backend = self.backend_name(), .detail = std::move(text)});
    };
    auto content = parse_ticket(ticket);
    if (!content || check_label("group", content->group))
        refuse("this is not the ticket of a lock; pass the complete string that detach() returned");
    if (content->backend != self.backend->traits().name)
        refuse("the ticket belongs to another kind of backend; adopt it through a locker on the same kind");
    return std::move(*content);
}

retry_policy adoption_retry_policy(const core& self)
{
    return retry_policy::exponential(20ms, 2.0, 500ms).total_time(self.options.operation_timeout);
}

/// Processes an answer that is not a usable grant. After a grant that arrived too late, the adoption is repeated.
void process_answer(core& self, lock_record& record, retry_schedule& schedule, const create_outcome& outcome)
{
    auto failure = outcome.error;
    if (outcome.status == create_status::busy) {
        auto context = context_of(self, record);
        context.detail =
            "nothing is held under this ticket any more: it was used, or the lock has expired or was taken";
        throw create_error(errc::not_held, std::move(context));
    }
    if (outcome.status == create_status::granted)
        failure = make_late_grant_failure();
    const bool again = is_retryable(failure->code) && schedule.on_failed(lease_clock::now());
    if (!again || schedule.next_at() >= schedule.deadline())
        throw_failed(*failure, context_of(self, record));
}

/// Returns `granted`; `again` if a request was sent or an answer was processed, so that the state must be checked
/// again; or `wait`, and stores in `seen` the version that was checked.
step next_adoption_step(core& self, const lock_record::ptr& record, const std::string& backend_ticket,
    retry_schedule& schedule, std::uint32_t& seen)
{
    const auto now = lease_clock::now();
    {
        std::unique_lock guard(self.mutex);
        if (record->current_phase() != phase::acquiring)
            return step::granted;
        seen = record->version;
        if (self.closed_to_new.load(std::memory_order_relaxed)) {
            guard.unlock();
            throw_shutting_down(self, *record);
        }
        if (std::exchange(record->acquire_state().outcome_ready, false)) {
            const create_outcome outcome = std::move(record->acquire_state().outcome);
            guard.unlock();
            process_answer(self, *record, schedule, outcome);
            return step::again;
        }
        if (record->in_flight != operation::none && now >= schedule.deadline()) {
            guard.unlock();
            throw_failed(*unanswered(self), context_of(self, *record));
        }
        if (record->in_flight != operation::none || now < schedule.next_at()) {
            self.timers.schedule_wait(
                *record, record->in_flight != operation::none ? schedule.deadline() : schedule.next_at());
            return step::wait;
        }
        if (record->attempts_made > 0)
            ++self.stats.retries;
        static_cast<void>(key_queues::prepare_attempt(*record, now, true));
        if (!record->list_hook::is_linked())
            self.unqueued_acquires.push_back(*record);
    }
    self.start_request(
        *record,
        [&](adapter& backend) {
            backend.start_adopt(
                backend_ticket, record, completion<create_outcome>::bind<&lock_record::on_created>(record));
        },
        [&](const failure_ptr& failure) { record->on_created(create_outcome::failed(failure)); });
    return step::again;
}

} // namespace

/// Adopts a lock. The adoption enters no queue: the lock is held by its ticket, so it does not compete with the
/// waiters.
asio::awaitable<lock> adopt(std::shared_ptr<core> self, std::string ticket, acquire_options options)
{
    check_tickets_supported(*self, {});
    auto content = read_ticket(*self, ticket);
    const auto backend_ticket = std::move(content.backend_ticket);
    auto record = prepare_adoption(self, std::move(content), std::move(options));
    acquire_guard on_exit(record);
    try {
        throw_if_invalid(*self, *record);
        prepare_token(*self, *record);
        record->started = lease_clock::now();
        if (self->closed_to_new.load())
            throw_shutting_down(*self, *record);
        on_exit.enter_slow_path();
        const auto policy = adoption_retry_policy(*self);
        retry_schedule schedule(policy, record->started);
        for (;;) {
            std::uint32_t seen = 0;
            if (record->current_phase() == phase::acquiring)
                throw_if_cancelled(co_await asio::this_coro::cancellation_state);
            const step next = next_adoption_step(*self, record, backend_ticket, schedule, seen);
            if (next == step::granted) {
                on_exit.dismiss();
                co_return lock_record::make_lock(std::move(record), std::move(self));
            }
            if (next == step::wait)
                co_await self->async_wait(*record, seen, on_close::end_wait);
        }
    } catch (...) {
        on_exit.failure = std::current_exception();
        throw;
    }
}

} // namespace colock::inline v0::detail::operations
