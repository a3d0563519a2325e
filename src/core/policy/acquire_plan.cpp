// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "core/policy/acquire_plan.hpp"

#include "core/policy/retry_schedule.hpp"

namespace colock::detail {

namespace {

/// A backend may end each wait as soon as it begins. After so many that were shorter than that, or than two answers
/// take, pauses are made, of 1 ms up to 16 ms.
constexpr unsigned most_vain_waits = 32;
constexpr auto shortest_wait = std::chrono::microseconds(200);
constexpr auto shortest_pause = std::chrono::milliseconds(1);
constexpr unsigned most_doublings = 4;

/// An attempt whose outcome is unknown may have left a grant, or a place in the backend's queue, which keeps others
/// out until it is found: it is looked for sooner than a long delay of the policy's is over. After a grant that came
/// too late nothing keeps anybody out, which nobody need tell, and a backend that is too slow should not be asked at
/// once. Up to 64 s.
constexpr auto first_look = std::chrono::seconds(1);
constexpr unsigned most_doublings_of_looks = 6;

} // namespace

acquire_plan::decision acquire_plan::next(
    time_point now, const view& seen, const retry_schedule& schedule) const noexcept
{
    const bool too_late = now >= schedule.deadline();
    if (seen.unanswered) {
        // The answer may arrive while it gives up: nothing of it is looked at.
        return {.what = too_late ? action::give_up : action::await_answer, .until = schedule.deadline()};
    }
    const bool due = now >= schedule.next_at();
    if (!seen.is_head) {
        if (too_late)
            return {.what = action::give_up};
        if (schedule.finite() && due)
            return {.what = action::count, .yields = true};
        return wait(seen, schedule);
    }

    const bool stands_back = waited_ && now < seen.stands_back_until;
    const bool blocked_here = stands_back || now < seen.held_here_until;
    if (!was_sent_ && !told_ && !(waited_ && too_late)) {
        if (!blocked_here)
            return send(now, schedule);
        // The release will hand over, or wake.
        if (schedule.attempts() == 0)
            return {.what = action::count};
    }
    if (too_late)
        return {.what = action::give_up};
    // After an error only time or a new connection helps: an event source that is just as broken could end each wait at
    // once.
    const bool wanted =
        due || now >= std::min({holder_expires_, sooner_expiry_, looks_again_}) || (told_ && !failed_) || is_retry_due_;
    if (wanted && !stands_back)
        return fresh_turn_ ? send(now, schedule) : decision{.what = action::yield};

    decision result = wait(seen, schedule);
    if (stands_back)
        result.until = std::min(schedule.deadline(), seen.stands_back_until);
    else if (!was_sent_ && blocked_here)
        result.until = std::min({schedule.deadline(), schedule.next_at(), seen.held_here_until});
    return result;
}

acquire_plan::decision acquire_plan::send(time_point now, const retry_schedule& schedule) const noexcept
{
    return {.what = action::send, .counts = now >= schedule.next_at() && (was_sent_ || !first_is_counted_)};
}

acquire_plan::decision acquire_plan::wait(const view& seen, const retry_schedule& schedule) const noexcept
{
    decision result{.until = schedule.deadline()};
    if (seen.is_head) {
        result.listens = seen.events && was_sent_ && !failed_ && !listens_ && looks_again_ == time_point::max();
        result.until = std::min({result.until, schedule.next_at(), holder_expires_, sooner_expiry_, looks_again_});
    } else if (schedule.finite()) {
        result.until = std::min(result.until, schedule.next_at());
    }
    return result;
}

bool acquire_plan::sent(bool counts) noexcept
{
    told_ = false;
    is_repeated_ = std::exchange(is_retry_due_, false);
    sooner_expiry_ = time_point::max();
    counts_ = counts;
    was_sent_ = true;
    return stops_listening();
}

void acquire_plan::answered() noexcept
{
    fresh_turn_ = false;
    holder_expires_ = time_point::max();
    looks_again_ = time_point::max();
}

bool acquire_plan::found_busy(time_point now, lease_clock::duration took, time_point expires) noexcept
{
    // Among many who want the same key a wake-up is often in vain, but seldom as soon as that, over and over.
    const bool paused = looks_again_ != time_point::max();
    const auto waited = now - took - found_busy_at_;
    if (!paused && !counts_ && waited <= std::max<lease_clock::duration>(shortest_wait, 2 * took))
        vain_waits_ = static_cast<std::uint8_t>(std::min(vain_waits_ + 1U, most_vain_waits + most_doublings));
    else if (!paused)
        vain_waits_ /= 2;
    answered();
    found_busy_at_ = now;
    if (!paused && !counts_ && vain_waits_ >= most_vain_waits) {
        const auto doublings = vain_waits_ - most_vain_waits;
        looks_again_ = saturating_add(now, shortest_pause * (1 << doublings));
    }
    failed_ = false;
    looks_ = 0;
    holder_expires_ = expires;
    return counts_;
}

bool acquire_plan::found_failing(time_point now, bool looks_soon) noexcept
{
    answered();
    failed_ = true;
    const bool was_look = looks_ > 0;
    if (counts_)
        looks_ = 0;
    // Once in doubt it stays so, whatever fails later.
    if (looks_soon || was_look) {
        looks_again_ = saturating_add(now, look_delay(looks_));
        looks_ = static_cast<std::uint8_t>(std::min(looks_ + 1U, most_doublings_of_looks + 1));
    }
    return counts_ || !(was_look || is_repeated_);
}

lease_clock::duration acquire_plan::look_delay(unsigned looks) noexcept
{
    return first_look * (1 << std::min(looks, most_doublings_of_looks));
}

std::uint32_t acquire_plan::waits(bool listens) noexcept
{
    waited_ = true;
    fresh_turn_ = true;
    if (listens) {
        listens_ = true;
        ++wait_number_;
    }
    return wait_number_;
}

bool acquire_plan::woken(std::uint32_t wait) noexcept
{
    if (!listens_ || wait != wait_number_)
        return false;
    listens_ = false;
    told_ = true;
    return true;
}

void acquire_plan::go_on_for(acquire_plan& spent) noexcept
{
    *this = spent;
    listens_ = false;
    spent.waited_ = false;
}

} // namespace colock::detail
