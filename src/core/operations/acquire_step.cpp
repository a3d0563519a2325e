// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/acquire_step.hpp"

#include "core/operations/operation_errors.hpp"
#include "core/state/abandon.hpp"
#include "core/state/core.hpp"
#include "core/state/possible_deadlock.hpp"

#include <algorithm>
#include <optional>

namespace colock::inline v0::detail {

namespace {

void release_late_grant(core& self, const lock_record::ptr& record, lease_clock::time_point now)
{
    self.update([&](deferred_actions& actions) {
        actions.add_request(deferred_actions::action::release, *record);
        record->in_flight = operation::release;
        if (auto* const queue = record->acquire_state().queue)
            queue->answer.error = record->acquire_state().outcome.error;
        record->set_operation_start(now);
        record->releases_late_grant = true;
    });
}

void process_answer(core& self, const lock_record::ptr& record, retry_schedule& schedule, create_outcome outcome)
{
    auto& acquire = record->acquire_state();
    const auto now = lease_clock::now();
    bool counts = true;
    acquire.outcome.error.reset();
    switch (outcome.status) {
    case create_status::granted:
        // Too late to be used.
        counts = acquire.plan.on_failed(now, true);
        acquire.outcome.error = make_late_grant_failure();
        release_late_grant(self, record, now);
        break;
    case create_status::busy:
        counts = acquire.plan.on_busy(now, now - record->operation_start(), holder_expiry(outcome, now));
        acquire.outcome.holder = std::move(outcome.holder);
        acquire.outcome.holder_host = std::move(outcome.holder_host);
        break;
    case create_status::failed:
        if (!is_retryable(outcome.error->code))
            throw_failed(*outcome.error, context_of(self, *record));
        counts = acquire.plan.on_failed(now, outcome.error->code == errc::outcome_unknown);
        acquire.outcome.error = std::move(outcome.error);
        break;
    }
    if (counts && !schedule.on_failed(now)) {
        throw_retries_ended(self, *record, schedule, last_answer::from(acquire.outcome, acquire.plan.holder_expires()));
    }
}

void start_wait_at_adapter(core& self, lock_record& record, std::uint32_t number, lease_clock::time_point until)
{
    self.backend->start_wait(
        lock_record::ptr(&record), until, [record = lock_record::ptr(&record), number](wait_outcome) {
            if (const auto alive = record->weak_core.lock())
                alive->on_woken(record, number);
        });
}

bool has_waiters_for_key(core& self, const lock_record& record)
{
    const std::lock_guard guard(self.mutex);
    return self.queues.find(record) != nullptr;
}

/// One step of an acquiring coroutine. Holds the mutex from the check of the state until the decision is carried out.
class acquire_step
{
public:
    acquire_step(core& self, const lock_record::ptr& record, retry_schedule& schedule, lease_clock::time_point now)
        : self_(self), record_(record), schedule_(schedule), now_(now), guard_(self.mutex)
    {
    }

    /// \param seen is set to the version that was checked
    [[nodiscard]] step take(std::uint32_t& seen);

private:
    [[nodiscard]] acquire_plan::view current_view() const;
    [[nodiscard]] step carry_out(const acquire_plan::decision& next);
    [[nodiscard]] step send(bool counts);
    [[nodiscard]] step wait(const acquire_plan::decision& next);
    [[nodiscard]] step take_answer();
    [[noreturn]] void give_up();
    void count_failure();
    void unlock()
    {
        guard_.unlock();
        actions_.run(self_);
    }

    core& self_;
    const lock_record::ptr& record_;
    retry_schedule& schedule_;
    const lease_clock::time_point now_;
    // Declared before the guard, so that the objects it owns are destroyed after the mutex is released.
    deferred_actions actions_;
    std::unique_lock<light_mutex> guard_;
};

step acquire_step::take(std::uint32_t& seen)
{
    lock_record& record = *record_;
    if (record.current_phase() != phase::acquiring)
        return step::granted;
    auto& acquire = record.acquire_state();
    // A claim that was sent before may hold the lock, or a place in the backend's queue, and then excludes all members
    // until it asks again. It therefore becomes a head, wherever it is.
    if (!acquire.queue && !acquire.outcome_ready)
        self_.queues.enter(record, acquire.plan.was_sent() || record.in_doubt(), actions_.wakes);
    seen = record.version;
    acquire.open_to_hand_over = false;
    if (std::exchange(acquire.outcome_ready, false))
        return take_answer();
    return carry_out(acquire.plan.next(now_, current_view(), schedule_));
}

acquire_plan::view acquire_step::current_view() const
{
    const auto& acquire = record_->acquire_state();
    const lock_record* const holder = acquire.queue->holder;
    return {.is_head = acquire.is_head,
        .unanswered = record_->in_flight != operation::none,
        .has_events = self_.can.events,
        .held_here_until = holder && !self_.can.fifo ? holder->lease().valid_until() : lease_clock::time_point::min(),
        .leave_to_others_until = acquire.queue->leave_to_others_until};
}

step acquire_step::carry_out(const acquire_plan::decision& next)
{
    switch (next.kind) {
    case acquire_plan::action::await_answer:
        self_.timers.schedule_wait(*record_, next.until);
        return step::await_answer;
    case acquire_plan::action::send:
        return send(next.counts);
    case acquire_plan::action::count_attempt:
        count_failure();
        return next.yields ? step::yield : step::again;
    case acquire_plan::action::yield:
        record_->acquire_state().plan.on_yielded();
        unlock();
        return step::yield;
    case acquire_plan::action::wait:
        return wait(next);
    case acquire_plan::action::give_up:
        break;
    }
    give_up();
}

/// Sends an attempt. Its answer is awaited like any other change; an immediate answer is processed without a wait.
step acquire_step::send(bool counts)
{
    self_.timers.schedule_wait(*record_, schedule_.deadline());
    if (counts && schedule_.attempts() > 0)
        ++self_.stats.retries;
    const bool must_cancel_wait = key_queues::prepare_attempt(*record_, now_, counts);
    unlock();
    send_attempt(self_, record_, must_cancel_wait);
    return self_.can.immediate ? step::again : step::await_answer;
}

step acquire_step::wait(const acquire_plan::decision& next)
{
    lock_record& record = *record_;
    auto& acquire = record.acquire_state();
    const bool is_first_wait = !acquire.plan.has_waited() && !record.group_in_progress;
    // A waiter is not reported to the observer after an error, because an error does not mean that the lock is busy.
    const bool has_failed = acquire.is_head && acquire.plan.was_sent() && acquire.outcome.error;
    if (self_.options.observer && !has_failed && !std::exchange(record.reported.waiting, true))
        self_.events.add({.type = lock_event::kind::waiting, .record = record_});
    const auto next_deadlock_check =
        self_.options.debug ? report_possible_deadlock(self_, record, now_) : lease_clock::time_point::max();
    self_.timers.schedule_wait(record, std::min(next.until, next_deadlock_check));
    const std::uint32_t number = acquire.plan.begin_wait(next.listens);
    if (next.listens)
        self_.queues.on_listening(record);
    // Counted after all calls that may throw, because the end of the wait decrements the counter.
    if (is_first_wait) {
        ++self_.stats.waits;
        ++self_.stats.waiting;
    }
    // A hand-over cancels the wait at the adapter, so it is possible only after `start_wait`.
    acquire.open_to_hand_over = !next.listens;
    unlock();
    if (next.listens) {
        start_wait_at_adapter(self_, record, number, next.until);
        guard_.lock();
        acquire.open_to_hand_over = true;
    }
    return step::wait;
}

step acquire_step::take_answer()
{
    create_outcome outcome = std::move(record_->acquire_state().outcome);
    if (auto* const queue = record_->acquire_state().queue)
        queue->answer = last_answer::from(outcome, holder_expiry(outcome, now_));
    unlock();
    process_answer(self_, record_, schedule_, std::move(outcome));
    return step::again;
}

void acquire_step::give_up()
{
    const auto last = last_answer_for(self_, *record_, now_);
    unlock();
    throw_retries_ended(self_, *record_, schedule_, last);
}

void acquire_step::count_failure()
{
    const auto last = last_answer_for(self_, *record_, now_);
    unlock();
    if (!schedule_.on_failed(now_))
        throw_retries_ended(self_, *record_, schedule_, last);
}

} // namespace

step next_step(core& self, lock_record::ptr& record, retry_schedule& schedule,
    std::optional<lease_clock::time_point> now, std::uint32_t& seen)
{
    if (record->current_phase() != phase::acquiring)
        return step::granted;
    if (self.closed_to_new.load(std::memory_order_relaxed))
        throw_shutting_down(self, *record);
    if (record->release_in_doubt())
        record = replace_claim(self, record);
    return acquire_step(self, record, schedule, now ? *now : lease_clock::now()).take(seen);
}

lock_record::ptr replace_claim(core& self, const lock_record::ptr& replaced)
{
    lock_record::ptr successor(new lock_record(self.shared_from_this(), {.key = replaced->key(),
                                                                            .mode = replaced->mode(),
                                                                            .max_holders = replaced->max_holders(),
                                                                            .ttl = replaced->ttl(),
                                                                            .keeps_place = replaced->keeps_place(),
                                                                            .owner = replaced->shared_owner()}));
    prepare_token(self, *successor);
    {
        const std::lock_guard guard(self.mutex);
        successor->take_progress_from(*replaced);
        if (replaced->acquire_state().queue)
            self.queues.replace(*replaced, *successor);
    }
    abandon_acquire(self, *replaced);
    return successor;
}

void send_attempt(core& self, const lock_record::ptr& record, bool must_cancel_wait)
{
    if (must_cancel_wait)
        self.backend->cancel_wait(*record);
    self.start_request(
        *record,
        [&](adapter& backend) {
            backend.start_create(record, completion<create_outcome>::bind<&lock_record::on_created>(record));
        },
        [&](const failure_ptr& failure) { record->on_created(create_outcome::failed(failure)); });
}

step grant_at_once(core& self, const lock_record::ptr& record, lease_clock::time_point now)
{
    if (!self.can.immediate || self.options.observer ||
        (self.queues.may_have(record->key_hash()) && has_waiters_for_key(self, *record)) || self.closed_to_new.load())
        return step::again;
    record->acquire_state().plan.on_sent_at_once();
    record->set_operation_start(now);
    std::optional<create_outcome> outcome;
    self.backend->start_create(record, completion<create_outcome>::into(outcome));
    if (outcome->status != create_status::granted) {
        self.on_created(*record, std::move(*outcome));
        return step::again;
    }
    return self.update([&](deferred_actions& actions) {
        ++self.stats.attempts;
        record->attempts_made.store(1, std::memory_order_relaxed);
        if (self.closed_to_new.load(std::memory_order_relaxed)) {
            // The locker was closed while the backend was asked. The caller throws, and its `acquire_guard` releases
            // the grant.
            record->granted = true;
            record->may_exist_in_backend = true;
            return step::again;
        }
        self.grant(*record, outcome->fence, actions);
        return self.stats.grants % max_immediate_grants == 0 ? step::yield : step::granted;
    });
}

void prepare_token(const core& self, const lock_record& record)
{
    if (!self.can.immediate)
        static_cast<void>(record.token());
}

} // namespace colock::inline v0::detail
