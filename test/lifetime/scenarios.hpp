// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/virtual_fixture.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/version.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace colock::testing {

/// How an operation is called.
enum class call_form : unsigned char
{
    /// The awaitable, in a coroutine that accepts every cancellation type.
    awaitable,
    /// The `async_` function, with a callback.
    async_function,
};

inline std::ostream& operator<<(std::ostream& out, call_form how)
{
    return out << (how == call_form::awaitable ? "awaitable" : "async function");
}

/// The environment of one scenario.
struct scenario_run
{
    virtual_fixture env;
    /// The context of the caller, if it is not that of the locker.
    std::optional<asio::io_context> callers_context;
    asio::cancellation_signal cancel;
    /// Index of the next external event.
    std::size_t next_event = 0;
    /// How often the operation has completed, with which error, and whether this was outside of the caller's context.
    int completions = 0;
    error_code result;
    bool ended_elsewhere = false;
    /// Whether the coroutine that awaits the operation has begun.
    bool has_begun = false;
    /// Shared with each handler that is neither invoked nor destroyed.
    std::shared_ptr<int> live_handlers = std::make_shared<int>();
    /// Another locker on the same store. It acts as another process.
    std::optional<colock::locker> other_locker;
    std::vector<lock> others;
    lock subject;
    lock_group group;
    /// The ticket of a detached lock.
    std::string ticket;

    explicit scenario_run(backend_kind kind) : env(kind), other_locker(env.memory) {}

    void complete(error_code code)
    {
        ++completions;
        result = code;
        ended_elsewhere = callers_context && !callers_context->get_executor().running_in_this_thread();
    }
    void complete(std::exception_ptr failure)
    {
        try {
            if (failure)
                std::rethrow_exception(std::move(failure));
            complete(error_code());
        } catch (const boost::system::system_error& failed) {
            complete(failed.code());
        }
    }

    template <class T>
    void spawn(asio::awaitable<T> started)
    {
        const auto wrapper = [](scenario_run& self, asio::awaitable<T> inner) -> asio::awaitable<void> {
            self.has_begun = true;
            co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
            // A granted lock is released when this frame is destroyed.
            if constexpr (std::is_void_v<T>)
                co_await std::move(inner);
            else
                static_cast<void>(co_await std::move(inner));
        };
        asio::co_spawn(callers_context ? *callers_context : env.io(), wrapper(*this, std::move(started)),
            asio::bind_cancellation_slot(cancel.slot(), coded{this, live_handlers}));
    }

    struct coded
    {
        scenario_run* self;
        std::shared_ptr<int> live;
        template <class Code, class... Result>
        void operator()(Code code, Result...)
        {
            self->complete(std::move(code));
        }
    };
    template <class Function>
    [[nodiscard]] auto bound(Function function)
    {
        return asio::bind_cancellation_slot(cancel.slot(), std::move(function));
    }
    [[nodiscard]] auto handler() { return bound(coded{this, live_handlers}); }

    /// Runs one handler. Returns false if none is ready.
    bool run_one()
    {
        env.io().restart();
        return env.io().poll_one() != 0;
    }

    /// Releases everything that is held, including a detached lock that nobody has adopted.
    void release_in_background()
    {
        others.clear();
        subject = {};
        group = {};
        try {
            if (!ticket.empty())
                static_cast<void>(run_coro(env.io(), other_locker->adopt(std::exchange(ticket, {}))));
        } catch (const error&) {
            // Another caller has adopted the lock.
        }
    }
    /// Waits for the key, and releases it in the next handler.
    void join_queue(acquire_options options = {})
    {
        asio::co_spawn(
            env.io(),
            [](locker by, acquire_options how) -> asio::awaitable<void> {
                const auto held = co_await by.acquire("k", std::move(how));
                co_await asio::post(asio::deferred);
            }(*env.locker, std::move(options)),
            asio::detached);
    }
};

/// The environment of a scenario whose caller is on another context than the locker.
struct foreign_run : scenario_run
{
    explicit foreign_run(backend_kind kind) : scenario_run(kind) { callers_context.emplace(); }

    template <class Function>
    [[nodiscard]] auto bound(Function function)
    {
        return asio::bind_executor(callers_context->get_executor(), scenario_run::bound(std::move(function)));
    }
    [[nodiscard]] auto handler() { return bound(coded{this, live_handlers}); }

    bool run_one()
    {
        callers_context->restart();
        return scenario_run::run_one() || callers_context->poll_one() != 0;
    }
};

/// One operation, from its start to its end.
template <class Run>
struct scenario_of
{
    using act = std::function<void(Run&)>;

    std::string name;
    act prepare;
    act start_awaitable;
    /// Empty if the operation has no `async_` function.
    act start_async;
    /// External events, made one after the other whenever the context has nothing left to run.
    std::vector<act> external_events;
};

using scenario = scenario_of<scenario_run>;

/// Returns scenarios for each operation, and for each way in which it may continue.
template <class Run>
[[nodiscard]] const std::vector<scenario_of<Run>>& scenarios();

/// Runs one handler or one external event. Returns false if nothing is left.
template <class Run>
bool one_step(const scenario_of<Run>& tested, Run& run)
{
    if (run.run_one())
        return true;
    if (run.completions > 0 || run.next_event == tested.external_events.size())
        return false;
    tested.external_events[run.next_event++](run);
    return true;
}

/// With a Boost below 1.86, a coroutine that is cancelled before its first step throws out of io_context::run().
[[nodiscard]] inline bool may_be_cancelled(const scenario_run& run, call_form how)
{
    return BOOST_VERSION >= 108600 || how == call_form::async_function || run.has_begun;
}

template <class Run>
void begin(const scenario_of<Run>& tested, call_form how, Run& run)
{
    (how == call_form::awaitable ? tested.start_awaitable : tested.start_async)(run);
    BOOST_TEST(run.completions == 0, "completed inside the call that starts it");
}

/// Starts the operation and makes `steps` steps. Returns false if nothing was left to do before.
template <class Run>
bool run_steps(const scenario_of<Run>& tested, call_form how, Run& run, std::size_t steps)
{
    constexpr std::size_t max_steps = 500;
    BOOST_TEST_REQUIRE(steps < max_steps);
    tested.prepare(run);
    begin(tested, how, run);
    for (std::size_t step = 0; step < steps; ++step) {
        if (!one_step(tested, run))
            return false;
    }
    return true;
}

template <class Run, class Check>
void for_every_scenario(Check check)
{
    for (const auto& tested : scenarios<Run>()) {
        for (const auto how : {call_form::awaitable, call_form::async_function}) {
            if (how == call_form::async_function && !tested.start_async)
                continue;
            BOOST_TEST_CONTEXT(tested.name << ", " << how)
            {
                check(tested, how);
            }
        }
    }
}

} // namespace colock::testing
