// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>
#include <colock/spi/adapter.hpp>

#include <cstddef>

namespace colock::remote {

/// Of operations that are looked at or ended in one go: between two, the event loop can do something else.
inline constexpr std::size_t most_per_turn = 256;

/// What became of a request.
enum class delivery : unsigned char
{
    answered,
    /// Certainly not sent.
    unsent,
    /// Sent, at least in part, and not answered.
    unanswered,
};

/// How long an operation may take, and what becomes of one that takes longer.
///
/// Deadlines are looked at by a timer that turns at this pace. Time in which the event loop stood still is not charged:
/// what was answered meanwhile has not been read yet.
class deadlines
{
public:
    explicit deadlines(lease_clock::duration operation_timeout) noexcept : timeout_(operation_timeout) {}

    [[nodiscard]] lease_clock::time_point of(lease_clock::time_point sent) const noexcept
    {
        return saturating_add(sent, timeout_);
    }
    /// Between two looks.
    [[nodiscard]] lease_clock::duration pace() const noexcept;
    /// By how much every deadline moves that was set before this turn of the timer.
    [[nodiscard]] static lease_clock::duration stood_still(
        lease_clock::time_point due, lease_clock::time_point now) noexcept;
    [[nodiscard]] static bool is_over(lease_clock::time_point deadline, lease_clock::time_point now) noexcept
    {
        return deadline <= now;
    }
    /// `unavailable` for what was certainly not sent, with the trouble there is, if there is any; `outcome_unknown` for
    /// what was.
    [[nodiscard]] static failure_ptr overdue(delivery how, const failure_ptr& trouble);

private:
    lease_clock::duration timeout_;
};

} // namespace colock::remote
