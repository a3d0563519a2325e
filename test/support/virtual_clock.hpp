// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <boost/asio/io_context.hpp>

#include <source_location>

namespace colock::testing {

/// Moves lease_clock forward, and with it every timer that runs on it: tests of minutes take no time. One at a time, as
/// a test's fixture or local; the clock is real again when it is gone. Real time goes on underneath, so durations in a
/// test should be far longer than the test takes.
///
/// Thread safety: unsafe while timers run in other threads.
class virtual_clock
{
public:
    virtual_clock() noexcept;
    virtual_clock(const virtual_clock&) = delete;
    virtual_clock& operator=(const virtual_clock&) = delete;
    ~virtual_clock();

    /// Moves the clock alone: timers notice only when something else makes their context look.
    static void skip(lease_clock::duration span) noexcept;

    /// Moves the clock and runs everything that is due then, and what follows from it.
    static void advance(
        asio::io_context& io, lease_clock::duration span, std::source_location where = std::source_location::current());

    /// The same in small steps, so that a timer that is armed again by its own handler fires as often as it would have.
    static void advance_by_steps(asio::io_context& io, lease_clock::duration span, lease_clock::duration step,
        std::source_location where = std::source_location::current());
};

} // namespace colock::testing
