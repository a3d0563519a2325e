// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace colock::detail {

class retry_schedule;

/// What one acquire does next. Knows no I/O, takes no lock and reads no clock: it is told what happens, and asked.
///
/// Only the head of its key's local queue speaks to the backend. It tries at once; after a busy answer it tries again
/// when its policy's delay is over, when the grant in its way expires, when it was told that the lock may be free, or,
/// after an outcome that is unknown or a grant that came too late, to look what has become of it.
/// Whoever stands behind counts its attempts by its own delays, without a word to the backend.
class acquire_plan
{
public:
    using time_point = lease_clock::time_point;

    /// What it sees of its key, and of its claim.
    struct view
    {
        bool is_head = false;
        /// An operation on its claim is under way.
        bool unanswered = false;
        /// The backend tells when the lock may be free.
        bool events = false;
        /// A holder of this very locker has it until then: the backend could only say busy.
        time_point held_here_until = time_point::min();
        /// It leaves the way to the waiters of other lockers until then.
        time_point stands_back_until = time_point::min();
    };

    enum class action : unsigned char
    {
        await_answer,
        send,
        /// One more that failed, without having asked.
        count,
        /// At once, over and over, would starve the loop.
        yield,
        wait,
        give_up,
    };

    struct decision
    {
        action what = action::wait;
        /// To send: it counts under the policy, because it is not made for a wake-up.
        bool counts = false;
        /// To count: others run before it goes on.
        bool yields = false;
        /// To wait: the backend is to tell when the lock may be free.
        bool listens = false;
        /// To wait, or to await the answer.
        time_point until = time_point::max();
    };

    [[nodiscard]] decision next(time_point now, const view& seen, const retry_schedule& schedule) const noexcept;

    /// A create is sent. True if the backend listens for it, which is to be cancelled.
    [[nodiscard]] bool sent(bool counts) noexcept;
    /// One that the backend answers inside the call; it counts as was said before.
    void sent_at_once() noexcept { was_sent_ = true; }
    /// The answer is busy, after `took`; true if it counts under the policy.
    [[nodiscard]] bool found_busy(time_point now, lease_clock::duration took, time_point expires) noexcept;
    /// The answer is an error, or a grant that comes too late. True if it counts under the policy: all do but the looks
    /// that this asks for, and attempts that were made because contact was regained.
    /// \param looks_soon it may have left something that keeps others out, or nothing keeps anybody out
    [[nodiscard]] bool found_failing(time_point now, bool looks_soon) noexcept;
    void yielded() noexcept { fresh_turn_ = true; }
    /// Returns the number of this wait, which its end at the backend has to name if it listens.
    std::uint32_t waits(bool listens) noexcept;
    /// The wait with that number has ended at the backend; false if it was over already.
    [[nodiscard]] bool woken(std::uint32_t wait) noexcept;
    /// True if the backend listens for it, which is to be cancelled.
    [[nodiscard]] bool stops_listening() noexcept { return std::exchange(listens_, false); }
    /// The backend is to tell when the lock may be free.
    [[nodiscard]] bool listens() const noexcept { return listens_; }
    /// The lock may be free: a release of this locker's.
    void told() noexcept { told_ = true; }
    /// The backend can be reached again. Returns whether the next attempt is due now: if the last one failed, or if
    /// this listens for an event that may have been missed meanwhile.
    [[nodiscard]] bool regained_contact(bool misses_events) noexcept
    {
        return is_retry_due_ = failed_ || (listens_ && misses_events);
    }
    /// The grant in its way ends earlier than was heard.
    void hears_of_expiry(time_point earlier) noexcept { sooner_expiry_ = std::min(sooner_expiry_, earlier); }

    /// Several locks were asked for in one step, and that was counted: the first attempt alone is not counted again.
    void first_is_counted() noexcept { first_is_counted_ = true; }
    /// The outcome of that step is unknown: the first attempt alone looks what has become of it.
    void first_looks() noexcept { looks_ = 1; }

    /// It was sent at least once.
    [[nodiscard]] bool was_sent() const noexcept { return was_sent_; }
    /// It had to wait, and is counted among the waiting.
    [[nodiscard]] bool has_waited() const noexcept { return waited_; }
    /// It is not to be counted any more; true if it was.
    [[nodiscard]] bool stops_waiting() noexcept { return std::exchange(waited_, false); }

    /// The delay before the next look at what has become of an unknown outcome or of a grant that came too late.
    /// \param looks how many there were before
    [[nodiscard]] static lease_clock::duration look_delay(unsigned looks) noexcept;

    /// In the place of one whose claim is spent: as far as that has come, but nobody listens for it.
    void go_on_for(acquire_plan& spent) noexcept;

private:
    [[nodiscard]] decision send(time_point now, const retry_schedule& schedule) const noexcept;
    [[nodiscard]] decision wait(const view& seen, const retry_schedule& schedule) const noexcept;
    void answered() noexcept;

    /// When the grant that stands in the way expires; an expiry wakes nobody.
    time_point holder_expires_ = time_point::max();
    /// An earlier one that was heard of since the last attempt was sent.
    time_point sooner_expiry_ = time_point::max();
    /// After waits that the backend has ended too often for nothing, unless it is told here, after an outcome that is
    /// unknown, or after a late grant: when it looks again.
    time_point looks_again_ = time_point::max();
    time_point found_busy_at_{};
    /// A late end of an earlier wait carries another number.
    std::uint32_t wait_number_ = 0;
    /// How many waits have ended as soon as they had begun, and for nothing; half of them for each that has not.
    std::uint8_t vain_waits_ = 0;
    /// Since the last attempt that counted.
    std::uint8_t looks_ = 0;
    bool was_sent_ = false;
    bool counts_ = true;
    bool failed_ = false;
    bool waited_ = false;
    /// It has been suspended since the last answer.
    bool fresh_turn_ = true;
    bool told_ = false;
    /// The backend can be reached again since the last attempt; see `regained_contact`.
    bool is_retry_due_ = false;
    /// The attempt under way was made for that reason.
    bool is_repeated_ = false;
    bool listens_ = false;
    bool first_is_counted_ = false;
};

} // namespace colock::detail
