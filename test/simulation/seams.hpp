// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <optional>

/// Everything that would make two runs differ is under the control of the simulator: the clocks of the C library, the
/// random bytes of tokens, jitter, and the timers of Asio. The functions of the C library are replaced in the program,
/// so that the library needs no code for this.
///
/// Thread safety: none; the simulator has one thread.
namespace colock::simulation {

/// Stops all clocks, and seeds tokens and jitter. Real time continues when the object is destroyed.
class frozen_time
{
public:
    explicit frozen_time(std::uint64_t seed);
    frozen_time(const frozen_time&) = delete;
    frozen_time& operator=(const frozen_time&) = delete;
    ~frozen_time();

    /// Sets the time that all clocks show.
    static void set(lease_clock::time_point now) noexcept;
};

/// Returns the time until the next timer of a context is due, at least 1 ms, or nothing if the context has no timer. No
/// handler of the context may be ready.
[[nodiscard]] std::optional<lease_clock::duration> until_next_timer(asio::io_context& io);

/// A source of random numbers with a small state: splitmix64.
class random_source
{
public:
    explicit random_source(std::uint64_t seed) noexcept : state_(seed) {}

    [[nodiscard]] std::uint64_t next() noexcept
    {
        std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15U;
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
        return mixed ^ (mixed >> 31);
    }
    [[nodiscard]] std::uint32_t below(std::uint32_t bound) noexcept
    {
        return static_cast<std::uint32_t>((next() >> 32) * bound >> 32);
    }
    [[nodiscard]] bool once_in(std::uint32_t times) noexcept { return below(times) == 0; }
    /// A duration from `low` to `high`, in microseconds.
    template <class Low, class High>
    [[nodiscard]] lease_clock::duration between(Low low, High high) noexcept
    {
        const auto from = std::chrono::duration_cast<std::chrono::microseconds>(low);
        const auto to = std::chrono::duration_cast<std::chrono::microseconds>(high);
        return from + std::chrono::microseconds(below(static_cast<std::uint32_t>((to - from).count()) + 1));
    }

private:
    std::uint64_t state_;
};

} // namespace colock::simulation
