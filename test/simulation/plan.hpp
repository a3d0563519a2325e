// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>
#include <colock/spi/capabilities.hpp>

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace colock::simulation {

using time_point = lease_clock::time_point;

/// When the parts of a run begin, in true time. After the storm there are no faults, and after the calm no new calls.
inline constexpr time_point calm_begins{std::chrono::seconds(30)};
inline constexpr time_point quiet_begins{std::chrono::seconds(50)};
inline constexpr time_point quiet_ends{std::chrono::seconds(1000)};

/// The kind of a step. Its details are drawn from the seed of the step.
enum class action : unsigned char
{
    acquire,
    try_acquire,
    acquire_all,
    with_lock,
    callback,
    release,
    extend,
    is_locked,
    wait_for_loss,
    transfer,
    grow_group,
    group_by_id,
    break_lock,
    list,
    purge,
    shut_down,
    drop_locker,
    cut,
    silence,
    slow_link,
    refuse,
};

struct step
{
    lease_clock::duration at;
    action what;
    std::uint64_t seed;
};

/// Everything that a run does. The setting follows from the seed; shrinking removes steps.
struct plan
{
    std::uint64_t seed = 0;
    std::vector<step> steps{};
};

[[nodiscard]] plan make_plan(std::uint64_t seed);
[[nodiscard]] const char* name_of(action what) noexcept;

enum class backend_kind : unsigned char
{
    memory,
    model,
    quorum,
};

/// The settings of a run, which are drawn from its seed.
struct setting
{
    explicit setting(std::uint64_t seed);

    backend_kind kind;
    colock::capabilities can;
    bool has_faults;
    bool ends_abruptly;
    bool has_observer;
    bool observer_is_slow;
    bool reports_timeout;
    unsigned process_count;
    unsigned lockers_per_process;
    unsigned key_count;
    std::chrono::milliseconds answer_timeout{1000};
    std::chrono::milliseconds operation_timeout;
    lease_clock::duration min_delay;
    lease_clock::duration max_delay;
    bool overtakes;
};

struct run_result
{
    /// The first violation, or an empty string.
    std::string violation{};
    /// Hash of the whole history.
    std::uint64_t hash = 0;
    std::uint64_t grants = 0;
    std::uint64_t handlers = 0;
    lease_clock::duration virtual_time{0};
};

/// Executes a plan. The process must have one thread.
/// \param timeline receives the history
[[nodiscard]] run_result execute(const plan& planned, std::ostream* timeline = nullptr);

} // namespace colock::simulation
