// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/error.hpp>
#include <colock/status.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace colock {

/// Counters of a locker since it was made, and how much there is now.
struct locker_stats
{
    /// Creates that were sent or tried.
    std::uint64_t attempts = 0;
    std::uint64_t grants = 0;
    /// Attempts that found somebody else.
    std::uint64_t busy = 0;
    /// Attempts after the first of their acquire, being woken not counted.
    std::uint64_t retries = 0;
    /// Acquires that had to wait, and for how long in sum and at most.
    std::uint64_t waits = 0;
    std::chrono::nanoseconds waited_total{0};
    std::chrono::nanoseconds waited_longest{0};
    std::uint64_t renewals = 0;
    /// Renewals that failed and will be tried again.
    std::uint64_t renewal_errors = 0;
    /// By lost_reason, whoever is told of them: handles, an observer, a `with_lock`. `released` is not a loss and stays
    /// 0.
    std::array<std::uint64_t, 7> losses{};
    std::uint64_t releases = 0;
    /// Acquisitions cleaned up in the background.
    std::uint64_t settled = 0;
    /// Of these, those of which no backend could prove that nothing is held; their ttl has passed since. And what a
    /// quorum has granted on a master that could not be told to take it back.
    std::uint64_t unproven = 0;
    std::uint64_t reconnects = 0;

    /// Now. What has expired is not held any more, although nobody may have noticed.
    std::uint64_t held = 0;
    std::uint64_t waiting = 0;
    std::uint64_t settling = 0;

    [[nodiscard]] std::uint64_t lost(lost_reason reason) const noexcept
    {
        return losses[static_cast<std::size_t>(reason)];
    }
};

/// A lock that a locker holds now.
struct held_lock
{
    std::string key{};
    std::string group{};
    lock_mode mode = lock_mode::exclusive;
    std::uint64_t fence = 0;
    std::chrono::milliseconds ttl{0};
    /// Until the local deadline; absent for a lock without ttl.
    std::optional<std::chrono::nanoseconds> valid_for{};
};

/// What became of one member of a group.
struct lock_report
{
    std::string key{};
    /// Empty if it went well, else why not.
    error_code status{};
    /// As it was before, as far as is known: of a lock of one's own what the handle knows, of another's what the
    /// backend told.
    lock_status before{};
};

/// What `shutdown` could not bring to an end before its deadline.
struct shutdown_report
{
    /// Keys of locks whose bodies still ran; they are left to their ttl.
    std::vector<std::string> still_running{};
    /// Keys whose release or clean-up has not been answered, or whose acquire has not, so that it may have to be given
    /// back yet; they are free after their ttl at the latest.
    std::vector<std::string> unsettled{};
    /// Clean-ups that ended without proof, over the locker's life.
    std::uint64_t unproven = 0;
    /// Calls that other threads had made into a backend which answers at once, and which had not returned. What they
    /// are granted is given back when they do.
    std::uint64_t unfinished_calls = 0;

    [[nodiscard]] bool clean() const noexcept
    {
        return still_running.empty() && unsettled.empty() && unfinished_calls == 0;
    }
};

} // namespace colock
