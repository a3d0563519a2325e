// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/state/cleanup_queue.hpp"

#include <algorithm>

namespace colock::detail {

using namespace std::chrono_literals;

namespace {

constexpr decltype(release_state::backoff) backoff_first{50};
constexpr decltype(release_state::backoff) backoff_cap{2000};

} // namespace

void cleanup_queue::may_stand(record& claim, std::chrono::milliseconds ttl) noexcept
{
    claim.back().may_stand_until =
        std::max(claim.back().may_stand_until, ttl == 0ms ? time_point::max() : saturating_add(claim.sent(), ttl));
}

cleanup_queue::time_point cleanup_queue::unproven_after(const record& ending) const noexcept
{
    // What the server does not end by itself stands until it is taken back.
    return shard_.can.expires ? saturating_add(ending.back().may_stand_until, shard_.options.operation_timeout)
                              : time_point::max();
}

void cleanup_queue::enter(record& ending)
{
    intrusive_ptr_add_ref(&ending);
    ending_.push_back(ending);
    ++shard_.stats.settling;
}

void cleanup_queue::give_back(record& ending, deferred_actions& actions)
{
    if (shard_.dead && !shard_.can.immediate)
        return end(ending, false, actions);
    // Its end comes back here: nothing may overtake a create or an extend that is under way.
    if (ending.under_way != operation::none)
        return;
    record::ptr next;
    if (!shard_.dead && !ending.back().settles && ending.granted)
        next = shard_.queues.pick_for_hand_over(ending, actions.wakes);
    if (next && next->acquire.listens())
        actions.ask(deferred_actions::action::cancel_wait, *next);
    if (next)
        actions.ask(deferred_actions::action::hand_over, ending, next);
    else
        actions.ask(ending.granted && !ending.in_doubt() ? deferred_actions::action::release
                                                         : deferred_actions::action::abandon,
            ending);
    const auto now = lease_clock::now();
    ending.under_way = operation::give_back;
    ending.set_sent(now);
    // Inside the call that is about to be made, another thread may be granted the lock, and tell of it.
    if (shard_.options.observer && shard_.can.immediate && !ending.back().settles && ending.granted) {
        ending.back().told_early = true;
        shard_.events.add({.what = lock_event::kind::released, .subject = &ending});
    }
    if (next) {
        next->sends_create();
        next->place.open_to_hand_over = false;
        next->set_sent(now);
        static_cast<void>(next->acquire.sent(false));
    } else {
        ending.set_awaited(shard_.queues.find(ending) != nullptr);
    }
}

void cleanup_queue::on_given_back(record& subject, release_outcome&& outcome, deferred_actions& actions)
{
    subject.under_way = operation::none;
    if (outcome.others_wait && !shard_.can.fifo) {
        if (key_queue* queue = shard_.queues.find(subject)) {
            const auto now = lease_clock::now();
            queue->stands_back_until = now + std::clamp<lease_clock::duration>(2 * (now - subject.sent()), 500us, 20ms);
        }
    }
    const bool late_grant = std::exchange(subject.gives_back_late_grant, false);
    if (subject.where() == phase::acquiring) {
        // Its acquire goes on. What is not proven given back, and keeps everybody out, is taken back apart from that,
        // and the acquire has another token, because this release may still arrive.
        if (outcome.status == release_status::failed)
            subject.spend();
        subject.notify(actions.wakes);
    } else if (subject.where() == phase::ending && late_grant) {
        // That was a plain release, and its acquire was given up meanwhile: there may be more to take back.
        give_back(subject, actions);
    } else if (subject.where() == phase::ending) {
        const bool failed = outcome.status == release_status::failed;
        // The session that could have proven the release is lost, so no later attempt can prove it.
        const bool is_final = failed && outcome.error->cause == errc::lost;
        if (!std::exchange(subject.back().answered, true)) {
            subject.back().status = outcome.status;
            // Nobody asks for the answer after a loss, but why the lease could not be kept.
            if (!subject.back().settles)
                subject.back().error = std::move(outcome.error);
        }
        if (failed && !is_final) {
            retry_later(subject, actions);
        } else {
            subject.back().settles = subject.back().settles || failed;
            end(subject, !failed, actions);
        }
    }
}

void cleanup_queue::retry_later(record& ending, deferred_actions& actions)
{
    ending.back().settles = true;
    const auto now = lease_clock::now();
    const time_point unproven_after = this->unproven_after(ending);
    if (shard_.dead || now >= unproven_after)
        return end(ending, false, actions);
    // It may not have been carried out, or it may: whoever waits behind it has to look for itself.
    if (ending.granted)
        shard_.queues.wake_heads(ending, actions.wakes);
    // Whoever waited for the first answer may leave now; the clean-up keeps the core.
    if (!kept_)
        kept_ = owner_.lock();
    ending.back().backoff =
        std::clamp<decltype(ending.back().backoff)>(ending.back().backoff * 2U, backoff_first, backoff_cap);
    ending.back().retry_at = std::min(saturating_add(now, ending.back().backoff), unproven_after);
    shard_.timers.schedule(ending, std::min(ending.back().retry_at, ending.answer_by));
    ending.notify(actions.wakes);
}

void cleanup_queue::end(record& ending, bool proven, deferred_actions& actions)
{
    shard_.timers.schedule(ending, time_point::max());
    ending_.erase(ending_.iterator_to(ending));
    actions.ended.emplace_back(&ending, false);
    --shard_.stats.settling;
    if (ending.back().settles) {
        ++shard_.stats.settled;
        if (!proven)
            ++shard_.stats.unproven;
    } else {
        ++shard_.stats.releases;
    }
    if (shard_.options.observer && (ending.back().settles || !ending.back().told_early)) {
        shard_.events.add({.what = ending.back().settles ? lock_event::kind::settled : lock_event::kind::released,
            .subject = &ending,
            .proven = proven});
    }
    ending.move_to(phase::ended);
    ending.notify(actions.wakes);
    if (ending.granted && proven)
        shard_.queues.wake_after_release(ending, actions.wakes);
    else if (ending.granted)
        shard_.queues.wake_heads(ending, actions.wakes);
    if (ending_.empty()) {
        actions.keep = std::move(kept_);
        drained_.notify(actions.wakes);
    }
}

void cleanup_queue::keep_until_ended(const record& ending)
{
    // One that is released at once is in no list: whoever asks the backend keeps the core.
    if (ending.where() == phase::ending && ending.list_hook::is_linked() && !kept_)
        kept_ = owner_.lock();
}

void cleanup_queue::give_up(deferred_actions& actions)
{
    while (!ending_.empty())
        end(ending_.front(), false, actions);
}

const std::vector<std::string>& cleanup_queue::leave_behind(deferred_actions& actions)
{
    for (record& unanswered : ending_) {
        left_behind_.push_back(unanswered.key());
        unanswered.back().settles = true;
    }
    give_up(actions);
    return left_behind_;
}

record::ptr cleanup_queue::drop_after_fork(deferred_actions& actions)
{
    if (ending_.empty()) {
        actions.keep = std::move(kept_);
        drained_.notify(actions.wakes);
        return {};
    }
    record& first = ending_.front();
    ending_.erase(ending_.iterator_to(first));
    --shard_.stats.settling;
    return {&first, false};
}

} // namespace colock::detail
