// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/metrics.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace colock::inline v0::detail {

/// How an acquire ended; the values of the label `outcome`.
enum class acquire_end : unsigned char
{
    granted,
    exhausted,
    cancelled,
    shut_down,
    failed,
};
inline constexpr std::array<std::string_view, 5> acquire_end_names{
    "granted", "exhausted", "cancelled", "shut_down", "failed"};

/// Numbers of durations by bucket.
struct duration_histogram
{
    explicit duration_histogram(const std::vector<std::chrono::nanoseconds>& bounds) : counts(bounds.size() + 1) {}

    void add(std::chrono::nanoseconds span, const std::vector<std::chrono::nanoseconds>& bounds) noexcept;

    /// The number of durations in each bucket, not cumulative. The last bucket has no bound.
    std::vector<std::uint64_t> counts;
    double sum_in_seconds = 0;
};

/// Counters of the keys of one prefix.
struct key_counters
{
    explicit key_counters(const metrics_options& options)
        : wait_times(options.wait_buckets), hold_times(options.hold_buckets)
    {
    }

    std::array<std::uint64_t, acquire_end_names.size()> acquires{};
    std::uint64_t waits = 0;
    std::uint64_t releases = 0;
    std::array<std::uint64_t, lost_reason_count> losses{};
    std::uint64_t renewals = 0;
    std::uint64_t risks = 0;
    std::uint64_t elections = 0;
    std::uint64_t resignations = 0;
    std::uint64_t depositions = 0;
    std::uint64_t proven_cleanups = 0;
    std::uint64_t unproven_cleanups = 0;
    duration_histogram wait_times;
    duration_histogram hold_times;
};

/// Counters of one backend.
struct backend_counters
{
    std::uint64_t reconnects = 0;
    std::uint64_t suspensions = 0;
    std::uint64_t unreachable = 0;
    std::uint64_t warnings = 0;
};

/// A copy of all counters.
struct metrics_snapshot
{
    std::map<std::string, key_counters, std::less<>> prefixes;
    std::map<std::string, backend_counters, std::less<>> backends;
};

/// All counters of a metrics object, under one mutex. The mutex is held for a look-up and a few additions, or for a
/// copy of the counters.
class counter_store
{
public:
    /// Prefix under which all keys are counted that have no counters of their own.
    static constexpr std::string_view other_prefix = "other";

    /// \throws validation_error if an option is outside of its range
    explicit counter_store(metrics_options&& options);

    /// Calls `change(key_counters&)` with the counters of the key.
    template <class Change>
    void change_key(std::string_view key, Change change) noexcept
    {
        const std::lock_guard guard(mutex_);
        change(counters_of(key));
    }
    /// Calls `change(backend_counters&)`. If there is no memory for the counters of a new backend, does nothing.
    template <class Change>
    void change_backend(std::string_view backend, Change change) noexcept
    {
        const std::lock_guard guard(mutex_);
        try {
            auto found = counted_.backends.find(backend);
            if (found == counted_.backends.end())
                found = counted_.backends.try_emplace(std::string(backend)).first;
            change(found->second);
        } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch): documented
        }
    }

    [[nodiscard]] metrics_snapshot snapshot() const;
    [[nodiscard]] const metrics_options& options() const noexcept { return options_; }

private:
    /// The mutex must be held.
    [[nodiscard]] key_counters& counters_of(std::string_view key) noexcept;

    const metrics_options options_;
    mutable std::mutex mutex_;
    metrics_snapshot counted_;
    /// Not in `counted_` before its first use.
    key_counters other_;
    bool has_other_ = false;
};

} // namespace colock::inline v0::detail
