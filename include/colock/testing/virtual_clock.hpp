// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/detail/requirements.hpp>

#include <colock/clock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <variant>

/// These tools test a program that uses colock, without a server and without waiting. The CMake target is
/// colock::testing.
namespace colock::testing {

/// Moves lease_clock forward, so that tests of minutes take milliseconds. All timers of colock use lease_clock: leases,
/// renewals, retries and timeouts. Timers of the program take part if they are a lease_timer. Other timers, such as
/// `asio::steady_timer` and `asio::cancel_after`, and servers do not.
///
/// Only one object may exist at a time. It must exist before the first adapter of the test is made, and until the last
/// one is destroyed: make it the first member of a fixture. The destructor restores the real clock. Real time still
/// passes.
///
/// The functions are static, so that code under test can call them without the object. The context must not be run by
/// another thread.
///
/// Thread safety: unsafe.
class virtual_clock
{
public:
    /// The default step: timers run at most this much later than they are due.
    static constexpr lease_clock::duration default_step = std::chrono::milliseconds(10);
    /// The default limit of run() and run_until(), in virtual time.
    static constexpr lease_clock::duration default_limit = std::chrono::hours(1);

    /// Sets the clock to the real time.
    virtual_clock() noexcept;
    virtual_clock(const virtual_clock&) = delete;
    virtual_clock& operator=(const virtual_clock&) = delete;
    ~virtual_clock();

    /// Runs a coroutine on `io` to its end, and returns its result or throws its exception. While nothing is ready to
    /// run, the clock moves forward by `default_step`.
    /// \throws std::runtime_error if the coroutine has not ended after `limit` in virtual time. The message begins with
    ///     the file and line of the caller. The coroutine stays on `io`.
    template <class T>
    static T run(asio::io_context& io, asio::awaitable<T> coroutine, lease_clock::duration limit = default_limit,
        std::source_location caller = std::source_location::current())
    {
        struct outcome
        {
            bool has_ended = false;
            std::exception_ptr failure{};
            std::optional<std::conditional_t<std::is_void_v<T>, std::monostate, T>> value{};
        };
        const auto end = std::make_shared<outcome>();
        asio::co_spawn(io, std::move(coroutine), [end](std::exception_ptr failure, auto... value) {
            *end = {true, std::move(failure), {}};
            end->value.emplace(std::move(value)...);
        });
        run_until(io, [&] { return end->has_ended; }, limit, caller);
        if (end->failure)
            std::rethrow_exception(std::exchange(end->failure, nullptr));
        if constexpr (!std::is_void_v<T>)
            return std::move(*end->value);
    }

    /// Runs handlers of `io` until the condition is true. While nothing is ready to run, the clock moves forward by
    /// `default_step`.
    /// \throws std::runtime_error if the condition is not true after `limit` in virtual time, or nothing is left to
    ///     run. The message begins with the file and line of the caller.
    static void run_until(asio::io_context& io, const std::function<bool()>& condition,
        lease_clock::duration limit = default_limit, std::source_location caller = std::source_location::current());

    /// Moves the clock by `span`, and runs all handlers that become due. The clock moves in steps, so that a timer that
    /// is armed again by its own handler runs as often as in real time.
    /// \param step greater than 0
    /// \throws std::runtime_error if handlers follow each other without end
    static void advance(asio::io_context& io, lease_clock::duration span, lease_clock::duration step = default_step,
        std::source_location caller = std::source_location::current());

    /// Moves the clock by `span` at once, and runs nothing. The process seems to have been paused. May be called inside
    /// a handler or a coroutine. Timers that are due run at the next call of another function.
    static void skip(lease_clock::duration span) noexcept;
};

} // namespace colock::testing
