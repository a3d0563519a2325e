// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace colock::inline v0::detail {

class retry_schedule;

/// Decides the next action of one acquire. Performs no I/O, takes no mutex and reads no clock.
///
/// Only the heads of the local queue of a key send requests to the backend. A head tries at once, unless a caller of
/// this locker holds the lock, or it is left to other lockers. It tries again in one of these cases:
/// - The delay of its policy is over.
/// - The conflicting grant expires.
/// - An event has reported that the lock may be free, and the last attempt did not end with an error.
/// - The backend can be reached again after an error, or after it may have lost events.
/// - A check is due, which was scheduled after an unknown outcome, a late grant, or too many futile waits.
///
/// A waiter behind the heads sends nothing. If its policy is finite, it counts an attempt after each delay.
class acquire_plan
{
public:
    using time_point = lease_clock::time_point;

    /// The state of the key and of the claim, as far as it matters to the decision.
    struct view
    {
        bool is_head = false;
        /// An operation on the claim is in flight.
        bool unanswered = false;
        /// The backend sends an event when the lock may be free.
        bool has_events = false;
        /// Until this time another caller of this locker has the lock, so the backend could only answer busy.
        time_point held_here_until = time_point::min();
        /// Until this time the acquire sends no attempt, so that waiters of other lockers can take the lock.
        time_point leave_to_others_until = time_point::min();
    };

    enum class action : unsigned char
    {
        await_answer,
        send,
        /// Count a failed attempt without a request.
        count_attempt,
        /// Let other handlers run first, because immediate repetition would block the event loop.
        yield,
        wait,
        give_up,
    };

    struct decision
    {
        action kind = action::wait;
        /// For `send`: the attempt counts under the policy, because the delay of the policy is over.
        bool counts = false;
        /// For `count_attempt`: let other handlers run afterwards.
        bool yields = false;
        /// For `wait`: ask the backend for an event when the lock may be free.
        bool listens = false;
        /// For `wait` and `await_answer`: when `next` must be called again at the latest.
        time_point until = time_point::max();
    };

    [[nodiscard]] decision next(time_point now, const view& seen, const retry_schedule& schedule) const noexcept;

    /// Called when a create is sent. Returns true if a wait at the backend is in flight, which must be cancelled.
    [[nodiscard]] bool on_sent(bool counts) noexcept;
    /// Called when a create is sent that the backend answers inside the call. Does not change whether the attempt
    /// counts.
    void on_sent_at_once() noexcept { was_sent_ = true; }
    /// Called when the answer is busy, after `took`. Returns true if the attempt counts under the policy.
    [[nodiscard]] bool on_busy(time_point now, lease_clock::duration took, time_point expires) noexcept;
    /// Returns when the conflicting grant expires, as the last answer has reported; max if that is not known.
    [[nodiscard]] time_point holder_expires() const noexcept { return holder_expires_; }
    /// Called when the answer is an error, or a grant that arrived too late. Returns true if the attempt counts under
    /// the policy. An attempt that was made before its delay was over does not count if it was a check of an earlier
    /// result, or was made because the backend could be reached again.
    /// \param checks_soon the result must be checked soon: true for an unknown outcome and for a late grant
    [[nodiscard]] bool on_failed(time_point now, bool checks_soon) noexcept;
    void on_yielded() noexcept { was_suspended_ = true; }
    /// Called when a wait begins. Returns the number of the wait; the end of a wait at the backend must pass it to
    /// `end_wait`.
    std::uint32_t begin_wait(bool listens) noexcept;
    /// Called when the wait with that number has ended at the backend. Returns false if the wait was over already.
    [[nodiscard]] bool end_wait(std::uint32_t wait) noexcept;
    /// Records that the wait at the backend is over. Returns true if it was in flight, and must be cancelled.
    [[nodiscard]] bool stop_listening() noexcept { return std::exchange(is_listening_, false); }
    /// Whether the backend has been asked for an event when the lock may be free.
    [[nodiscard]] bool is_listening() const noexcept { return is_listening_; }
    /// Called when the lock may be free because of a release in this locker.
    void on_release() noexcept { event_pending_ = true; }
    /// Called when the backend can be reached again. Returns whether the next attempt is due now: if the last one
    /// failed, or if this acquire waits for an event that may have been missed.
    [[nodiscard]] bool on_contact_regained(bool misses_events) noexcept
    {
        return is_retry_due_ = last_attempt_failed_ || (is_listening_ && misses_events);
    }
    /// Called when the conflicting grant ends earlier than reported before.
    void on_earlier_expiry(time_point earlier) noexcept { earlier_expiry_ = std::min(earlier_expiry_, earlier); }

    /// Called after several locks were requested in one step, and this was counted. The first separate attempt is not
    /// counted again.
    void mark_first_as_counted() noexcept { first_is_counted_ = true; }
    /// Called after several locks were requested in one step, with an unknown outcome. The first separate attempt
    /// checks the result.
    void mark_first_as_check() noexcept { check_count_ = 1; }

    /// Whether an attempt was sent at least once.
    [[nodiscard]] bool was_sent() const noexcept { return was_sent_; }
    /// Whether the acquire has begun a wait. It then counts as a waiter in the statistics, unless it belongs to a
    /// group.
    [[nodiscard]] bool has_waited() const noexcept { return has_waited_; }
    /// Returns whether the acquire has begun a wait, and forgets it.
    [[nodiscard]] bool stop_waiting() noexcept { return std::exchange(has_waited_, false); }

    /// Returns the delay before the next check of an unknown outcome or of a grant that arrived too late.
    /// \param checks the number of checks before
    [[nodiscard]] static lease_clock::duration check_delay(unsigned checks) noexcept;

    /// Continues for another claim: takes over the progress of `replaced`, but without a wait at the backend.
    void take_progress_from(acquire_plan& replaced) noexcept;

private:
    [[nodiscard]] decision send(time_point now, const retry_schedule& schedule) const noexcept;
    [[nodiscard]] decision wait(const view& seen, const retry_schedule& schedule) const noexcept;
    void on_answered() noexcept;

    /// When the conflicting grant expires. An expiry sends no event.
    time_point holder_expires_ = time_point::max();
    /// An earlier expiry that was reported since the last attempt was sent.
    time_point earlier_expiry_ = time_point::max();
    /// When the next check is due. After too many futile waits, an event may come first. After an unknown outcome or a
    /// late grant, events are ignored until then.
    time_point next_check_ = time_point::max();
    time_point found_busy_at_{};
    /// Number of the latest wait at the backend. The end of an earlier wait may arrive late, and has another number.
    std::uint32_t wait_number_ = 0;
    /// Number of waits that ended at once and did not bring the lock. A busy answer after a longer wait halves the
    /// number; an answer after a pause does not change it.
    std::uint8_t futile_waits_ = 0;
    /// Number of checks that were scheduled since the last busy answer or counted attempt.
    std::uint8_t check_count_ = 0;
    bool was_sent_ = false;
    /// Whether the attempt in flight counts under the policy.
    bool attempt_counts_ = true;
    bool last_attempt_failed_ = false;
    bool has_waited_ = false;
    /// Whether the acquire has been suspended since the last answer.
    bool was_suspended_ = true;
    bool event_pending_ = false;
    /// Whether an attempt is due because the backend can be reached again; see `on_contact_regained`.
    bool is_retry_due_ = false;
    /// Whether the attempt in flight was made because the backend could be reached again.
    bool is_repeated_ = false;
    bool is_listening_ = false;
    bool first_is_counted_ = false;
};

} // namespace colock::inline v0::detail
