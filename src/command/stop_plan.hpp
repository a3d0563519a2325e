// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace command {

/// Decides when the child has to end: after a terminating signal, at the end of the lease, or after its loss. Performs
/// no I/O and reads no clock.
class stop_plan
{
public:
    using time_point = colock::lease_clock::time_point;
    using duration = colock::lease_clock::duration;

    /// Time before the end of the lease at which the child is killed.
    static constexpr std::chrono::milliseconds kill_margin{500};

    struct decision
    {
        /// The child's group gets SIGTERM now.
        bool terminate = false;
        /// The child's group gets SIGKILL now.
        bool kill = false;
        /// When `next` has to be called again at the latest.
        time_point until = time_point::max();
    };

    /// \param grace time from SIGTERM to SIGKILL
    explicit stop_plan(duration grace) noexcept : grace_(grace) {}

    /// A terminating signal was forwarded to the child's group at `now`.
    void on_signal(time_point now) noexcept { kill_at_the_latest(now + grace_); }
    /// The loss of the lock became known at `now`.
    /// \param has_ended whether the lease has ended, so that there is no time for the grace
    void on_lost(time_point now, bool has_ended) noexcept
    {
        is_lost_ = true;
        must_terminate_ = must_terminate_ || !is_terminating_;
        kill_at_the_latest(has_ended ? now : now + grace_);
    }

    /// Returns what is due at `now`. Each signal is due once.
    /// \param lease_end the earliest end of the leases
    [[nodiscard]] decision next(time_point now, time_point lease_end) noexcept
    {
        const bool limited = lease_end != time_point::max();
        if (limited && now >= lease_end - kill_margin - grace_ && !is_lost_) {
            is_lost_ = true;
            must_terminate_ = must_terminate_ || !is_terminating_;
            kill_at_the_latest(lease_end - kill_margin);
        }
        decision result;
        result.terminate = std::exchange(must_terminate_, false);
        result.kill = !is_killed_ && now >= kill_at_;
        is_killed_ = is_killed_ || result.kill;
        if (!is_killed_)
            result.until = kill_at_;
        if (limited && !is_lost_)
            result.until = std::min(result.until, lease_end - kill_margin - grace_);
        return result;
    }

    /// Returns whether the child was told to end, so that the lock may be released only when its group is empty.
    [[nodiscard]] bool is_terminating() const noexcept { return is_terminating_; }
    /// Returns whether the lock was lost, or was about to be lost, before the child had ended.
    [[nodiscard]] bool is_lost() const noexcept { return is_lost_; }

private:
    void kill_at_the_latest(time_point kill_at) noexcept
    {
        is_terminating_ = true;
        kill_at_ = std::min(kill_at_, kill_at);
    }

    duration grace_;
    time_point kill_at_ = time_point::max();
    bool must_terminate_ = false;
    bool is_terminating_ = false;
    bool is_killed_ = false;
    bool is_lost_ = false;
};

} // namespace command
