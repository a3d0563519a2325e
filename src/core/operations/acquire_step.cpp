// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/operations/acquire_step.hpp"

#include "core/operations/operation_errors.hpp"
#include "core/state/background_release.hpp"
#include "core/state/core.hpp"
#include "core/state/possible_deadlock.hpp"

#include <algorithm>
#include <optional>

namespace colock::inline v0::detail {

namespace {

void release_late_grant(core& self, const record::ptr& wanted, lease_clock::time_point now)
{
    self.update([&](deferred_actions& actions) {
        actions.add_request(deferred_actions::action::release, *wanted);
        wanted->in_flight = operation::release;
        if (auto* const queue = wanted->acquire().queue)
            queue->answer.error = wanted->acquire().outcome.error;
        wanted->set_operation_start(now);
        wanted->releases_late_grant = true;
    });
}

void process_answer(core& self, const record::ptr& wanted, retry_schedule& schedule, create_outcome outcome)
{
    record& subject = *wanted;
    auto& acquire = subject.acquire();
    const auto now = lease_clock::now();
    bool counts = true;
    acquire.outcome.error.reset();
    switch (outcome.status) {
    case create_status::granted:
        counts = acquire.plan.on_failed(now, true);
        acquire.outcome.error = too_late_to_use();
        release_late_grant(self, wanted, now);
        break;
    case create_status::busy:
        counts = acquire.plan.on_busy(now, now - subject.operation_start(), holder_expiry(outcome, now));
        acquire.outcome.holder = std::move(outcome.holder);
        acquire.outcome.holder_host = std::move(outcome.holder_host);
        break;
    case create_status::failed:
        if (!is_retryable(outcome.error->code))
            throw_failed(*outcome.error, context_of(self, subject));
        counts = acquire.plan.on_failed(now, outcome.error->code == errc::outcome_unknown);
        acquire.outcome.error = std::move(outcome.error);
        break;
    }
    if (counts && !schedule.on_failed(now)) {
        throw_retries_ended(self, subject, schedule, last_answer::from(acquire.outcome, acquire.plan.holder_expires()));
    }
}

void start_wait_at_adapter(core& self, record& wanted, std::uint32_t number, lease_clock::time_point until)
{
    self.backend->start_wait(record::ptr(&wanted), until, [subject = record::ptr(&wanted), number](wait_outcome) {
        if (const auto alive = subject->weak_core.lock())
            alive->on_woken(subject, number);
    });
}

bool is_queued(core& self, const record& wanted)
{
    const std::lock_guard guard(self.mutex);
    return self.queues.find(wanted) != nullptr;
}

/// One step of an acquiring coroutine: checks the state, and acts on it. Holds the mutex until it acts.
class acquire_step
{
public:
    acquire_step(core& self, const record::ptr& wanted, retry_schedule& schedule, lease_clock::time_point now)
        : self_(self), wanted_(wanted), schedule_(schedule), now_(now), guard_(self.mutex)
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
    const record::ptr& wanted_;
    retry_schedule& schedule_;
    const lease_clock::time_point now_;
    // Declared before the guard, so that the objects it owns are destroyed after the mutex is released.
    deferred_actions actions_;
    std::unique_lock<light_mutex> guard_;
};

step acquire_step::take(std::uint32_t& seen)
{
    record& subject = *wanted_;
    if (subject.current_phase() != phase::acquiring)
        return step::granted;
    auto& acquire = subject.acquire();
    if (!acquire.queue && !acquire.outcome_ready)
        // A claim whose outcome is unknown may hold the lock. Others in the queue cannot be granted before the
        // claim has asked.
        self_.queues.enter(subject, acquire.plan.was_sent() || subject.in_doubt(), actions_.wakes);
    seen = subject.version;
    acquire.open_to_hand_over = false;
    if (std::exchange(acquire.outcome_ready, false))
        return take_answer();
    return carry_out(acquire.plan.next(now_, current_view(), schedule_));
}

acquire_plan::view acquire_step::current_view() const
{
    const auto& acquire = wanted_->acquire();
    const record* const holder = acquire.queue->holder;
    return {.is_head = acquire.is_head,
        .unanswered = wanted_->in_flight != operation::none,
        .has_events = self_.can.events,
        .held_here_until = holder && !self_.can.fifo ? holder->lease().valid_until() : lease_clock::time_point::min(),
        .yields_until = acquire.queue->yields_until};
}

step acquire_step::carry_out(const acquire_plan::decision& next)
{
    switch (next.what) {
    case acquire_plan::action::await_answer:
        self_.timers.schedule_wait(*wanted_, next.until);
        return step::await_answer;
    case acquire_plan::action::send:
        return send(next.counts);
    case acquire_plan::action::count:
        count_failure();
        return next.yields ? step::yield : step::again;
    case acquire_plan::action::yield:
        wanted_->acquire().plan.on_yielded();
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
    self_.timers.schedule_wait(*wanted_, schedule_.deadline());
    if (counts && schedule_.attempts() > 0)
        ++self_.stats.retries;
    const bool listens = begin_attempt(*wanted_, now_, counts);
    unlock();
    send_attempt(self_, wanted_, listens);
    return self_.can.immediate ? step::again : step::await_answer;
}

step acquire_step::wait(const acquire_plan::decision& next)
{
    record& subject = *wanted_;
    auto& acquire = subject.acquire();
    const bool counts = !acquire.plan.has_waited() && !subject.group_in_progress;
    // A waiter is not reported to the observer after an error, because an error does not mean that the lock is busy.
    const bool fails = acquire.is_head && acquire.plan.was_sent() && acquire.outcome.error;
    if (self_.options.observer && !fails && !std::exchange(subject.reported.waiting, true))
        self_.events.add({.what = lock_event::kind::waiting, .subject = wanted_});
    const auto look_again =
        self_.options.debug ? report_possible_deadlock(self_, subject, now_) : lease_clock::time_point::max();
    self_.timers.schedule_wait(subject, std::min(next.until, look_again));
    const std::uint32_t number = acquire.plan.begin_wait(next.listens);
    if (next.listens)
        self_.queues.on_listening(subject);
    // Counted after all calls that may throw, because the end of the wait decrements the counter.
    if (counts) {
        ++self_.stats.waits;
        ++self_.stats.waiting;
    }
    // A hand-over is an operation on this claim, and must not begin before the wait at the adapter.
    acquire.open_to_hand_over = !next.listens;
    unlock();
    if (next.listens) {
        start_wait_at_adapter(self_, subject, number, next.until);
        guard_.lock();
        acquire.open_to_hand_over = true;
    }
    return step::wait;
}

step acquire_step::take_answer()
{
    create_outcome outcome = std::move(wanted_->acquire().outcome);
    if (auto* const queue = wanted_->acquire().queue)
        queue->answer = last_answer::from(outcome, holder_expiry(outcome, now_));
    unlock();
    process_answer(self_, wanted_, schedule_, std::move(outcome));
    return step::again;
}

void acquire_step::give_up()
{
    const auto last = answer_to(self_, *wanted_, now_);
    unlock();
    throw_retries_ended(self_, *wanted_, schedule_, last);
}

void acquire_step::count_failure()
{
    const auto last = answer_to(self_, *wanted_, now_);
    unlock();
    if (!schedule_.on_failed(now_))
        throw_retries_ended(self_, *wanted_, schedule_, last);
}

} // namespace

step next_step(core& self, record::ptr& wanted, retry_schedule& schedule, std::optional<lease_clock::time_point> now,
    std::uint32_t& seen)
{
    if (wanted->current_phase() != phase::acquiring)
        return step::granted;
    if (self.closed_to_new.load(std::memory_order_relaxed))
        throw_shutting_down(self, *wanted);
    if (wanted->release_in_doubt())
        wanted = take_over_from(self, wanted);
    return acquire_step(self, wanted, schedule, now ? *now : lease_clock::now()).take(seen);
}

record::ptr take_over_from(core& self, const record::ptr& replaced)
{
    record::ptr fresh(new record(self.shared_from_this(), {.key = replaced->key(),
                                                              .mode = replaced->mode(),
                                                              .max_holders = replaced->max_holders(),
                                                              .ttl = replaced->ttl(),
                                                              .keeps_place = replaced->keeps_place(),
                                                              .owner = replaced->shared_owner()}));
    prepare_token(self, *fresh);
    {
        const std::lock_guard guard(self.mutex);
        fresh->continue_for(*replaced);
        if (replaced->acquire().queue)
            self.queues.replace(*replaced, *fresh);
    }
    abandon_acquire(self, *replaced);
    return fresh;
}

bool begin_attempt(record& wanted, lease_clock::time_point now, bool counts)
{
    wanted.sends_create();
    wanted.set_operation_start(now);
    key_queues::expect_release(wanted);
    return wanted.acquire().plan.on_sent(counts);
}

void send_attempt(core& self, const record::ptr& wanted, bool waits)
{
    if (waits)
        self.backend->cancel_wait(*wanted);
    self.start_request(
        *wanted,
        [&](adapter& backend) {
            backend.start_create(wanted, completion<create_outcome>::bind<&record::on_created>(wanted));
        },
        [&](const failure_ptr& why) { wanted->on_created(create_outcome::failed(why)); });
}

step grant_at_once(core& self, const record::ptr& wanted, lease_clock::time_point now)
{
    if (!self.can.immediate || self.options.observer ||
        (self.queues.may_have(wanted->key_hash()) && is_queued(self, *wanted)) || self.closed_to_new.load())
        return step::again;
    wanted->acquire().plan.on_sent_at_once();
    wanted->set_operation_start(now);
    std::optional<create_outcome> outcome;
    self.backend->start_create(wanted, completion<create_outcome>::into(outcome));
    if (outcome->status != create_status::granted) {
        self.on_created(*wanted, std::move(*outcome));
        return step::again;
    }
    return self.update([&](deferred_actions& actions) {
        ++self.stats.attempts;
        wanted->attempts_made.store(1, std::memory_order_relaxed);
        if (self.closed_to_new.load(std::memory_order_relaxed)) {
            // The locker was closed while the backend was asked: the grant is released.
            wanted->granted = true;
            wanted->left_trace = true;
            return step::again;
        }
        self.grant(*wanted, outcome->fence, actions);
        return self.stats.grants % max_immediate_grants == 0 ? step::yield : step::granted;
    });
}

void prepare_token(const core& self, const record& wanted)
{
    if (!self.can.immediate)
        static_cast<void>(wanted.token());
}

} // namespace colock::inline v0::detail
