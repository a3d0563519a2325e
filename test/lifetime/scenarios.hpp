// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/virtual_fixture.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <functional>
#include <optional>
#include <ostream>
#include <string>
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
    asio::cancellation_signal cancel;
    /// Index of the next external event.
    std::size_t next_event = 0;
    /// How often the operation has completed, and with which error.
    int completions = 0;
    error_code result;
    /// Another locker on the same store. It acts as another process.
    std::optional<colock::locker> other_locker;
    std::vector<lock> others;
    lock subject;
    lock_group group;
    /// The ticket of a detached lock.
    std::string ticket;

    explicit scenario_run(backend_kind kind) : env(kind), other_locker(env.memory) {}

    void complete(std::exception_ptr failure)
    {
        ++completions;
        if (!failure)
            return;
        try {
            std::rethrow_exception(std::move(failure));
        } catch (const boost::system::system_error& failed) {
            result = failed.code();
        }
    }

    template <class T>
    void spawn(asio::awaitable<T> started)
    {
        const auto wrapper = [](asio::awaitable<T> inner) -> asio::awaitable<void> {
            co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
            // A granted lock is released when this frame is destroyed.
            static_cast<void>(co_await std::move(inner));
        };
        asio::co_spawn(env.io(), wrapper(std::move(started)),
            asio::bind_cancellation_slot(
                cancel.slot(), [this](std::exception_ptr failure) { complete(std::move(failure)); }));
    }
    void spawn(asio::awaitable<void> started)
    {
        const auto wrapper = [](asio::awaitable<void> inner) -> asio::awaitable<void> {
            co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
            co_await std::move(inner);
        };
        asio::co_spawn(env.io(), wrapper(std::move(started)),
            asio::bind_cancellation_slot(
                cancel.slot(), [this](std::exception_ptr failure) { complete(std::move(failure)); }));
    }

    struct coded
    {
        scenario_run* self;
        template <class... Result>
        void operator()(error_code code, Result...)
        {
            ++self->completions;
            self->result = code;
        }
        template <class... Result>
        void operator()(std::exception_ptr failure, Result...)
        {
            self->complete(std::move(failure));
        }
    };
    [[nodiscard]] auto handler() { return asio::bind_cancellation_slot(cancel.slot(), coded{this}); }

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

using act = std::function<void(scenario_run&)>;

/// One operation, from its start to its end.
struct scenario
{
    std::string name;
    act prepare;
    act start_awaitable;
    /// Empty if the operation has no `async_` function.
    act start_async;
    /// External events, made one after the other whenever the context has nothing left to run.
    std::vector<act> external_events;
};

/// Returns scenarios for each operation, and for each way in which it may continue.
[[nodiscard]] const std::vector<scenario>& scenarios();

/// Runs one handler or one external event. Returns false if nothing is left.
bool one_step(const scenario& tested, scenario_run& run);
void begin(const scenario& tested, call_form how, scenario_run& run);

template <class Check>
void for_every_scenario(Check check)
{
    for (const auto& tested : scenarios()) {
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
