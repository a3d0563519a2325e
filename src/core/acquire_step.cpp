// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/acquire_failures.hpp"
#include "core/core.hpp"

#include <algorithm>
#include <optional>

namespace colock::detail {

/// One look of an acquiring coroutine at where it stands, and what it does then. The mutex is held until then.
class core::acquire_step
{
public:
    acquire_step(core& self, const record_ptr& wanted, retry_schedule& schedule, time_point now)
        : self_(self), wanted_(wanted), schedule_(schedule), now_(now), guard_(self.mutex_)
    {
    }

    /// `seen` is the version that it has looked at.
    [[nodiscard]] step take(std::uint32_t& seen);

private:
    [[nodiscard]] attempt::view look() const;
    [[nodiscard]] step carry_out(const attempt::decision& next);
    [[nodiscard]] step send(bool counts);
    [[nodiscard]] step wait(const attempt::decision& next);
    [[nodiscard]] step judge_answer();
    [[noreturn]] void give_up();
    void count_failure();
    void unlock()
    {
        guard_.unlock();
        todo_.run(self_);
    }

    core& self_;
    const record_ptr& wanted_;
    retry_schedule& schedule_;
    const time_point now_;
    // Before the guard: what it owns is destroyed after the mutex is released.
    work todo_;
    std::unique_lock<light_mutex> guard_;
};

core::step core::acquire_step::take(std::uint32_t& seen)
{
    record& subject = *wanted_;
    if (subject.where() != phase::acquiring)
        return step::granted;
    if (!subject.queue && !subject.outcome_ready)
        self_.queues_.enter(subject, subject.attempting.was_sent(), todo_.wakes);
    seen = subject.version;
    subject.open_to_hand_over = false;
    if (std::exchange(subject.outcome_ready, false))
        return judge_answer();
    return carry_out(subject.attempting.next(now_, look(), schedule_));
}

attempt::view core::acquire_step::look() const
{
    const record& subject = *wanted_;
    const record* const holder = subject.queue->holder;
    return {.is_head = subject.is_head,
        .unanswered = subject.under_way != operation::none,
        .events = self_.can_.events,
        .held_here_until = holder && !self_.can_.fifo ? holder->lease().valid_until() : time_point::min(),
        .stands_back_until = subject.queue->stands_back_until};
}

core::step core::acquire_step::carry_out(const attempt::decision& next)
{
    switch (next.what) {
    case attempt::action::await_answer:
        self_.timers_.schedule(*wanted_, next.until);
        return step::park;
    case attempt::action::send:
        return send(next.counts);
    case attempt::action::ask_leave:
        unlock();
        return step::turn;
    case attempt::action::count:
        count_failure();
        return next.yields ? step::yield : step::again;
    case attempt::action::yield:
        wanted_->attempting.yielded();
        unlock();
        return step::yield;
    case attempt::action::wait:
        return wait(next);
    case attempt::action::give_up:
        break;
    }
    give_up();
}

/// It waits for the answer as it would wait for anything else; one that comes at once is looked at without that.
core::step core::acquire_step::send(bool counts)
{
    self_.timers_.schedule(*wanted_, schedule_.deadline());
    const bool listens = self_.begin_attempt(*wanted_, now_, counts);
    unlock();
    self_.send_attempt(wanted_, listens);
    return self_.can_.immediate ? step::again : step::park;
}

core::step core::acquire_step::wait(const attempt::decision& next)
{
    record& subject = *wanted_;
    if (!subject.attempting.has_waited()) {
        ++self_.stats_.waits;
        ++self_.stats_.waiting;
    }
    // Who waits after an error is not told that the lock is busy.
    const bool fails = subject.is_head && subject.attempting.was_sent() && subject.outcome.error;
    if (self_.options_.observer && !fails && !std::exchange(subject.told_waiting, true))
        todo_.tell({.what = work::note::waiting, .subject = wanted_});
    self_.timers_.schedule(subject, next.until);
    const std::uint32_t number = subject.attempting.waits(next.listens);
    // A hand-over would be an operation on this claim, and none may begin before its wait has.
    subject.open_to_hand_over = !next.listens && !subject.attempting.asks_leave();
    unlock();
    if (next.listens) {
        self_.start_wait_at_adapter(subject, number, next.until);
        guard_.lock();
        subject.open_to_hand_over = !subject.attempting.asks_leave();
    }
    return step::wait;
}

core::step core::acquire_step::judge_answer()
{
    create_outcome outcome = std::move(wanted_->outcome);
    if (wanted_->queue)
        wanted_->queue->answer = {.heard = true, .error = outcome.error};
    unlock();
    self_.judge(wanted_, schedule_, std::move(outcome));
    return step::again;
}

void core::acquire_step::give_up()
{
    const auto last = answer_to(*wanted_, now_);
    unlock();
    self_.give_up(*wanted_, schedule_, last);
}

void core::acquire_step::count_failure()
{
    const auto last = answer_to(*wanted_, now_);
    unlock();
    if (!schedule_.failed(now_))
        self_.give_up(*wanted_, schedule_, last);
}

core::step core::next_step(
    record_ptr& wanted, retry_schedule& schedule, std::optional<time_point> now, std::uint32_t& seen)
{
    throw_if_inherited(*wanted);
    if (wanted->where() != phase::acquiring)
        return step::granted;
    if (closed_to_new_.load(std::memory_order_relaxed))
        throw_shutting_down(*wanted);
    if (wanted->spent())
        wanted = take_over_from(wanted);
    return acquire_step(*this, wanted, schedule, now ? *now : lease_clock::now()).take(seen);
}

void core::judge(const record_ptr& wanted, retry_schedule& schedule, create_outcome outcome)
{
    record& subject = *wanted;
    const auto now = lease_clock::now();
    const auto took = now - subject.sent();
    bool counts = true;
    subject.outcome.error.reset();
    switch (outcome.status) {
    case create_status::granted:
        subject.attempting.found_no_use(took);
        subject.outcome.error = too_late_to_use();
        take_back_late_grant(wanted, now);
        break;
    case create_status::busy:
        counts = subject.attempting.found_busy(now, took,
            outcome.retry_after > lease_clock::duration::zero() ? saturating_add(now, outcome.retry_after)
                                                                : time_point::max());
        subject.outcome.holder = std::move(outcome.holder);
        break;
    case create_status::failed:
        if (!may_be_tried_again(outcome.error->code))
            throw_failed(*outcome.error, context_of(subject));
        subject.attempting.found_no_use(took);
        subject.outcome.error = std::move(outcome.error);
        break;
    }
    if (counts && !schedule.failed(now)) {
        give_up(subject, schedule, {.heard = true, .error = subject.outcome.error, .holder = subject.outcome.holder});
    }
}

void core::take_back_late_grant(const record_ptr& wanted, time_point now)
{
    {
        const std::lock_guard guard(mutex_);
        wanted->under_way = operation::give_back;
        if (wanted->queue)
            wanted->queue->answer.error = wanted->outcome.error;
    }
    wanted->set_sent(now);
    wanted->gives_back_late_grant = true;
    backend_->start_release(wanted, completion<release_outcome>::bind<&record::on_given_back>(wanted));
}

core::record_ptr core::take_over_from(const record_ptr& spent)
{
    record_ptr fresh(new record(shared_from_this(), {.key = spent->key(),
                                                        .mode = spent->mode(),
                                                        .max_holders = spent->max_holders(),
                                                        .ttl = spent->ttl(),
                                                        .queues = spent->queues(),
                                                        .owner = spent->shared_owner()}));
    prepare_token(*fresh);
    {
        const std::lock_guard guard(mutex_);
        fresh->go_on_for(*spent);
        if (spent->queue)
            queues_.change_places(*spent, *fresh);
    }
    depart(spent);
    return fresh;
}

last_answer core::answer_to(const record& wanted, time_point now)
{
    if (wanted.under_way != operation::none) {
        return {.heard = wanted.attempts_made > 0 && !wanted.attempting.is_overdue(wanted.sent(), now),
            .sent = true,
            .error = wanted.outcome.error,
            .holder = wanted.outcome.holder};
    }
    if (wanted.attempts_made > 0)
        return {.heard = true, .error = wanted.outcome.error, .holder = wanted.outcome.holder};
    // Whoever is not the head has asked nobody, and knows what the head knows.
    return wanted.queue->holder ? last_answer{.heard = true} : wanted.queue->answer;
}

/// Readers do not exclude each other: one may ask while those before it are being answered for the first time. Those
/// who have been told to wait are not overtaken.
bool core::asks_beside(const record& wanted, const key_queue& queue)
{
    const auto is_asking_reader = [](const record& member) {
        return member.mode() == lock_mode::shared && member.under_way == operation::create && member.attempts_made == 0;
    };
    return wanted.mode() == lock_mode::shared && !queue.holder &&
           std::all_of(queue.members.begin(), queue.members.end(), is_asking_reader);
}

std::optional<last_answer> core::answer_ahead(const record& wanted)
{
    if (!queues_.may_have(wanted.key_hash()))
        return std::nullopt;
    const std::lock_guard guard(mutex_);
    const key_queue* const queue = queues_.find(wanted);
    if (!queue || asks_beside(wanted, *queue))
        return std::nullopt;
    return queue->holder ? last_answer{.heard = true} : queue->answer;
}

/// Only an answer makes a lock busy: where there was none, what is known of the backend is told.
void core::give_up(const record& wanted, const retry_schedule& schedule, const last_answer& last) const
{
    auto context = context_of(wanted);
    context.attempts = std::max<std::size_t>(context.attempts + (last.sent ? 1 : 0), schedule.attempts());
    if (!last.heard) {
        if (const auto trouble = backend_->trouble())
            throw_failed(*trouble, std::move(context));
        if (!last.error) {
            context.detail = "the backend had not answered when the retry policy ended";
            throw create_error(last.sent ? errc::outcome_unknown : errc::unavailable, std::move(context));
        }
    }
    if (last.error)
        throw_failed(*last.error, std::move(context));
    if (!last.holder.empty())
        context.detail = "held by " + last.holder;
    throw retry_error(errc::retry_exhausted, std::move(context));
}

bool core::begin_attempt(record& wanted, time_point now, bool counts)
{
    wanted.under_way = operation::create;
    if (counts && wanted.attempts_made > 0)
        ++stats_.retries;
    wanted.set_sent(now);
    return wanted.attempting.sent(counts);
}

void core::send_attempt(const record_ptr& wanted, bool waits)
{
    if (waits)
        backend_->cancel_wait(*wanted);
    backend_->start_create(wanted, completion<create_outcome>::bind<&record::on_created>(wanted));
}

void core::start_wait_at_adapter(record& wanted, std::uint32_t number, time_point until)
{
    backend_->start_wait(record_ptr(&wanted), until, [subject = record_ptr(&wanted), number](woken) {
        if (const auto self = subject->weak_core.lock())
            self->on_woken(subject, number);
    });
}

void core::on_created(record& subject, create_outcome&& outcome)
{
    if (outcome.status == create_status::failed)
        must_be_said(outcome.error);
    work todo;
    {
        const std::lock_guard guard(mutex_);
        subject.under_way = operation::none;
        if (subject.where() == phase::ended || subject.inherited())
            return;
        ++stats_.attempts;
        // Written under the mutex alone.
        subject.attempts_made.store(
            subject.attempts_made.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        const bool unknown = outcome.status == create_status::failed && outcome.error->code == errc::outcome_unknown;
        if (unknown) {
            subject.taint();
            // A repeated create sets the ttl of what it finds to be ours already.
            if (subject.ttl() > subject.ttl().zero())
                subject.may_arrive_late(subject.ttl());
        }
        if (outcome.status == create_status::busy)
            ++stats_.busy;
        if (unknown || outcome.status == create_status::granted ||
            (outcome.status == create_status::busy && subject.queues()))
            subject.left_trace = true;

        if (subject.where() == phase::ending) {
            subject.granted = outcome.status == create_status::granted;
            if (subject.left_trace)
                settler_.give_back(subject, todo);
            else
                settler_.end(subject, true, todo);
        } else if (outcome.status == create_status::granted && !closed_to_new_.load(std::memory_order_relaxed) &&
                   (can_.immediate || lease_plan::arrives_in_time({subject.sent(), subject.ttl()},
                                          subject.lease().session_until(), lease_clock::now(), margins_)))
        {
            stop_trying(subject);
            leases_.grant(subject, outcome.fence, todo);
        } else {
            subject.outcome = std::move(outcome);
            subject.outcome_ready = true;
            subject.notify(todo.wakes);
        }
    }
    todo.run(*this);
}

void core::stop_trying(record& wanted)
{
    if (!wanted.queue && wanted.list_hook::is_linked())
        trying_.erase(trying_.iterator_to(wanted));
}

} // namespace colock::detail
