// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <utility>

namespace colock::testing {

namespace asio = boost::asio;

struct run_limits
{
    std::size_t handlers = 1'000'000;
    /// Time limit, which only a failing test reaches. A test without I/O fails earlier, when nothing is left to run.
    std::chrono::steady_clock::duration time = std::chrono::seconds(60);
};

/// Thrown if the awaited condition did not become true. The message begins with the caller's file and line.
class stuck : public std::runtime_error
{
public:
    using std::runtime_error::runtime_error;
};

/// Runs handlers, one at a time, until `reached` returns true.
/// \throws stuck if nothing is left to run, or a limit is reached
void run_until(asio::io_context& io, const std::function<bool()>& reached,
    std::source_location where = std::source_location::current(), run_limits limits = {});

/// Runs all handlers that are ready now, and the handlers that they make ready. Does not wait for timers or sockets.
void run_ready(
    asio::io_context& io, std::source_location where = std::source_location::current(), run_limits limits = {});

/// The result of a coroutine that was started on a context. The context may be run by other code.
template <class T>
class running
{
public:
    [[nodiscard]] bool done() const noexcept { return state_->done; }
    /// Runs the context until the coroutine has ended. Returns its result or throws its exception. To be called once.
    T get(asio::io_context& io, std::source_location where = std::source_location::current(), run_limits limits = {})
    {
        const auto state = state_;
        run_until(io, [state] { return state->done; }, where, limits);
        if (state->failure)
            std::rethrow_exception(std::exchange(state->failure, nullptr));
        if constexpr (!std::is_void_v<T>)
            return std::move(*state->result);
    }

private:
    template <class U>
    friend running<U> start(asio::io_context& io, asio::awaitable<U> coroutine);

    struct nothing
    {
    };
    struct state
    {
        bool done = false;
        std::exception_ptr failure;
        std::optional<std::conditional_t<std::is_void_v<T>, nothing, T>> result;
    };
    std::shared_ptr<state> state_ = std::make_shared<state>();
};

/// Spawns a coroutine on `io`, and returns before the coroutine has run.
template <class T>
[[nodiscard]] running<T> start(asio::io_context& io, asio::awaitable<T> coroutine)
{
    running<T> result;
    if constexpr (std::is_void_v<T>) {
        asio::co_spawn(io, std::move(coroutine), [state = result.state_](std::exception_ptr failure) {
            state->done = true;
            state->failure = std::move(failure);
        });
    } else {
        asio::co_spawn(io, std::move(coroutine), [state = result.state_](std::exception_ptr failure, T value) {
            state->done = true;
            state->failure = std::move(failure);
            state->result.emplace(std::move(value));
        });
    }
    return result;
}

/// Runs a coroutine to its end on the calling thread.
template <class T>
T run_coro(asio::io_context& io, asio::awaitable<T> coroutine,
    std::source_location where = std::source_location::current(), run_limits limits = {})
{
    return start(io, std::move(coroutine)).get(io, where, limits);
}

} // namespace colock::testing
