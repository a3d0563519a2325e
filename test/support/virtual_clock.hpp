// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/clock.hpp>

#include <boost/asio/io_context.hpp>

#include <source_location>

namespace colock::testing {

/// Moves lease_clock and all timers that use it forward, so that tests of minutes take no time. Only one object may
/// exist at a time, as a fixture or a local variable of a test. The destructor restores the real clock. Real time still
/// passes, so durations in a test should be much longer than the test takes.
///
/// Thread safety: unsafe while timers run in other threads.
class virtual_clock
{
public:
    virtual_clock() noexcept;
    virtual_clock(const virtual_clock&) = delete;
    virtual_clock& operator=(const virtual_clock&) = delete;
    ~virtual_clock();

    /// Moves the clock only. Timers notice the change when something else makes their context check its queue.
    static void skip(lease_clock::duration span) noexcept;

    /// Moves the clock and runs all handlers that become due, and the handlers that follow from them.
    static void advance(
        asio::io_context& io, lease_clock::duration span, std::source_location where = std::source_location::current());

    /// Like advance(), in small steps: a timer that is armed again by its own handler fires as often as in real time.
    static void advance_by_steps(asio::io_context& io, lease_clock::duration span, lease_clock::duration step,
        std::source_location where = std::source_location::current());
};

} // namespace colock::testing
