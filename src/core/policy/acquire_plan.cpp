// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/policy/acquire_plan.hpp"

#include "core/policy/retry_schedule.hpp"

namespace colock::inline v0::detail {

namespace {

/// Limits for a backend that ends each wait as soon as the wait begins. After `max_futile_waits` such waits, the
/// acquire pauses between attempts, for 1 ms to 16 ms. A wait is futile if it is not longer than `min_wait`, or not
/// longer than twice the time that the backend took to answer.
constexpr unsigned max_futile_waits = 32;
constexpr auto min_wait = std::chrono::microseconds(200);
constexpr auto min_pause = std::chrono::milliseconds(1);
constexpr unsigned max_pause_doublings = 4;

/// Delay of the first check after an unknown outcome or a late grant. The delay doubles with each check, up to 64 s.
///
/// An attempt with an unknown outcome may have left a grant or a place in the backend's queue, which blocks other
/// callers until a check finds it. The check therefore does not wait for a long delay of the policy. A late grant is
/// released, but no event reports this release to the acquire. The check is not made at once, because a backend that
/// grants late is slow.
constexpr auto first_check_delay = std::chrono::seconds(1);
constexpr unsigned max_check_doublings = 6;

} // namespace

acquire_plan::decision acquire_plan::next(
    time_point now, const view& seen, const retry_schedule& schedule) const noexcept
{
    const bool too_late = now >= schedule.deadline();
    if (seen.unanswered) {
        // An answer that arrives after the acquire has given up is left to the releases.
        return {.kind = too_late ? action::give_up : action::await_answer, .until = schedule.deadline()};
    }
    const bool is_due = now >= schedule.next_at();
    if (!seen.is_head) {
        if (too_late)
            return {.kind = action::give_up};
        if (schedule.finite() && is_due)
            return {.kind = action::count_attempt, .yields = true};
        return wait(seen, schedule);
    }

    const bool yields_to_others = has_waited_ && now < seen.leave_to_others_until;
    const bool blocked_here = yields_to_others || now < seen.held_here_until;
    if (!was_sent_ && !event_pending_ && !(has_waited_ && too_late)) {
        if (!blocked_here)
            return send(now, schedule);
        // A release in this locker hands over the lock to this waiter or wakes it, so the first attempt fails without a
        // request.
        if (schedule.attempts() == 0)
            return {.kind = action::count_attempt};
    }
    if (too_late)
        return {.kind = action::give_up};
    // After an error, only time or a new connection helps: an event source that is also broken could end each wait at
    // once.
    const bool must_send = is_due || now >= std::min({holder_expires_, earlier_expiry_, next_check_}) ||
                           (event_pending_ && !last_attempt_failed_) || is_retry_due_;
    if (must_send && !yields_to_others)
        return was_suspended_ ? send(now, schedule) : decision{.kind = action::yield};

    decision result = wait(seen, schedule);
    if (yields_to_others)
        result.until = std::min(schedule.deadline(), seen.leave_to_others_until);
    else if (!was_sent_ && blocked_here)
        result.until = std::min({schedule.deadline(), schedule.next_at(), seen.held_here_until});
    return result;
}

acquire_plan::decision acquire_plan::send(time_point now, const retry_schedule& schedule) const noexcept
{
    return {.kind = action::send, .counts = now >= schedule.next_at() && (was_sent_ || !first_is_counted_)};
}

acquire_plan::decision acquire_plan::wait(const view& seen, const retry_schedule& schedule) const noexcept
{
    decision result{.until = schedule.deadline()};
    if (seen.is_head) {
        result.listens =
            seen.has_events && was_sent_ && !last_attempt_failed_ && !is_listening_ && next_check_ == time_point::max();
        result.until = std::min({result.until, schedule.next_at(), holder_expires_, earlier_expiry_, next_check_});
    } else if (schedule.finite()) {
        result.until = std::min(result.until, schedule.next_at());
    }
    return result;
}

bool acquire_plan::on_sent(bool counts) noexcept
{
    event_pending_ = false;
    is_repeated_ = std::exchange(is_retry_due_, false);
    earlier_expiry_ = time_point::max();
    attempt_counts_ = counts;
    was_sent_ = true;
    return stop_listening();
}

void acquire_plan::on_answered() noexcept
{
    was_suspended_ = false;
    holder_expires_ = time_point::max();
    next_check_ = time_point::max();
}

bool acquire_plan::on_busy(time_point now, lease_clock::duration took, time_point expires) noexcept
{
    // If a key has many waiters, a woken waiter often finds the key busy again, but rarely at once and many times in a
    // row.
    const bool paused = next_check_ != time_point::max();
    const auto waited = now - took - found_busy_at_;
    if (!paused && !attempt_counts_ && waited <= std::max<lease_clock::duration>(min_wait, 2 * took))
        futile_waits_ = static_cast<std::uint8_t>(std::min(futile_waits_ + 1U, max_futile_waits + max_pause_doublings));
    else if (!paused)
        futile_waits_ /= 2;
    on_answered();
    found_busy_at_ = now;
    if (!paused && !attempt_counts_ && futile_waits_ >= max_futile_waits) {
        const auto doublings = futile_waits_ - max_futile_waits;
        next_check_ = saturating_add(now, min_pause * (1 << doublings));
    }
    last_attempt_failed_ = false;
    check_count_ = 0;
    holder_expires_ = expires;
    return attempt_counts_;
}

bool acquire_plan::on_failed(time_point now, bool checks_soon) noexcept
{
    on_answered();
    last_attempt_failed_ = true;
    const bool was_check = check_count_ > 0;
    if (attempt_counts_)
        check_count_ = 0;
    // Once the outcome is in doubt, it stays in doubt, whatever fails later.
    if (checks_soon || was_check) {
        next_check_ = saturating_add(now, check_delay(check_count_));
        check_count_ = static_cast<std::uint8_t>(std::min(check_count_ + 1U, max_check_doublings + 1));
    }
    return attempt_counts_ || !(was_check || is_repeated_);
}

lease_clock::duration acquire_plan::check_delay(unsigned checks) noexcept
{
    return first_check_delay * (1 << std::min(checks, max_check_doublings));
}

std::uint32_t acquire_plan::begin_wait(bool listens) noexcept
{
    has_waited_ = true;
    was_suspended_ = true;
    if (listens) {
        is_listening_ = true;
        ++wait_number_;
    }
    return wait_number_;
}

bool acquire_plan::end_wait(std::uint32_t wait) noexcept
{
    if (!is_listening_ || wait != wait_number_)
        return false;
    is_listening_ = false;
    event_pending_ = true;
    return true;
}

void acquire_plan::take_progress_from(acquire_plan& replaced) noexcept
{
    *this = replaced;
    is_listening_ = false;
    replaced.has_waited_ = false;
}

} // namespace colock::inline v0::detail
