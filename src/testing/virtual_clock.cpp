// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/testing/virtual_clock.hpp>

#include <colock/detail/clock_offset.hpp>

#include <boost/assert.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

namespace colock::testing {

namespace {

/// Limit for handlers that follow each other without a wait, which only a defect reaches.
constexpr std::size_t max_handlers = 1'000'000;

[[noreturn]] void fail(const std::source_location& caller, const char* reason)
{
    throw std::runtime_error(std::string(caller.file_name()) + ":" + std::to_string(caller.line()) + ": " + reason);
}

/// Runs the handlers that are ready, and the handlers that they make ready, until `condition` is true. Returns whether
/// the context has work left.
template <class Condition>
bool run_ready(asio::io_context& io, const std::source_location& caller, Condition condition)
{
    io.restart();
    for (std::size_t handlers = 0; !condition() && io.poll_one() != 0; ++handlers) {
        if (handlers == max_handlers)
            fail(caller, "handlers follow each other without end");
    }
    const bool has_work = !io.stopped();
    io.restart();
    return has_work;
}

/// Makes the reactor notice that the clock was moved. The kernel's timer does not follow lease_clock, but a new timer
/// that is due before all others makes the reactor check its whole queue.
void check_timers(asio::io_context& io)
{
    lease_timer first(io.get_executor());
    first.expires_at(lease_clock::time_point::min());
    // Shared, because the handler outlives this call if another one throws.
    const auto has_run = std::make_shared<bool>(false);
    first.async_wait([has_run](const boost::system::error_code&) { *has_run = true; });
    while (!*has_run) {
        if (io.run_one() == 0)
            io.restart();
    }
}

} // namespace

virtual_clock::virtual_clock() noexcept
{
    detail::clock_offset = 0;
}

virtual_clock::~virtual_clock()
{
    detail::clock_offset = 0;
}

void virtual_clock::run_until(asio::io_context& io, const std::function<bool()>& condition, lease_clock::duration limit,
    std::source_location caller)
{
    for (lease_clock::duration passed{0};; passed += default_step) {
        const bool has_work = run_ready(io, caller, condition);
        if (condition())
            return;
        if (!has_work)
            fail(caller, "nothing is left to run, and the end was not reached");
        if (passed >= limit)
            fail(caller, "the end was not reached within the limit of virtual time");
        skip(default_step);
        check_timers(io);
    }
}

void virtual_clock::advance(
    asio::io_context& io, lease_clock::duration span, lease_clock::duration step, std::source_location caller)
{
    BOOST_ASSERT(step > step.zero());
    constexpr auto never = [] { return false; };
    run_ready(io, caller, never);
    do {
        const auto part = std::min(span, step);
        skip(part);
        span -= part;
        check_timers(io);
        run_ready(io, caller, never);
    } while (span > span.zero());
}

void virtual_clock::skip(lease_clock::duration span) noexcept
{
    detail::clock_offset += span.count();
}

} // namespace colock::testing
