// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/rig.hpp"

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

/// How a verb is called.
enum class family : unsigned char
{
    /// The awaitable, from a coroutine that lets every cancellation type through.
    verb,
    /// The `async_` front, with a callback.
    front,
};

inline std::ostream& operator<<(std::ostream& out, family how)
{
    return out << (how == family::verb ? "verb" : "front");
}

/// What one scenario plays on.
struct stage
{
    rig on;
    asio::cancellation_signal cancel;
    std::size_t moved = 0;
    /// How often the operation completed, and with what.
    int completions = 0;
    error_code result;
    /// Another locker on the same store: another process.
    std::optional<colock::locker> rival;
    std::vector<lock> others;
    lock subject;
    lock_group group;
    /// Of a lock that was given up.
    std::string ticket;

    explicit stage(behind kind) : on(kind), rival(on.memory) {}

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
    void spawn(asio::awaitable<T> verb)
    {
        const auto wrapper = [](asio::awaitable<T> inner) -> asio::awaitable<void> {
            co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
            // A lock that is granted dies with this frame.
            static_cast<void>(co_await std::move(inner));
        };
        asio::co_spawn(on.io(), wrapper(std::move(verb)),
            asio::bind_cancellation_slot(
                cancel.slot(), [this](std::exception_ptr failure) { complete(std::move(failure)); }));
    }
    void spawn(asio::awaitable<void> verb)
    {
        const auto wrapper = [](asio::awaitable<void> inner) -> asio::awaitable<void> {
            co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
            co_await std::move(inner);
        };
        asio::co_spawn(on.io(), wrapper(std::move(verb)),
            asio::bind_cancellation_slot(
                cancel.slot(), [this](std::exception_ptr failure) { complete(std::move(failure)); }));
    }

    struct coded
    {
        stage* self;
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

    /// Lets go of all that is held, and of what nobody has adopted.
    void release_in_background()
    {
        others.clear();
        subject = {};
        group = {};
        try {
            if (!ticket.empty())
                static_cast<void>(run_coro(on.io(), rival->adopt(std::exchange(ticket, {}))));
        } catch (const error&) {
            // Somebody has.
        }
    }
    /// Waits for the key, and drops it in the next handler.
    void join_queue(acquire_options options = {})
    {
        asio::co_spawn(
            on.io(),
            [](locker by, acquire_options how) -> asio::awaitable<void> {
                const auto held = co_await by.acquire("k", std::move(how));
                co_await asio::post(asio::deferred);
            }(*on.locker, std::move(options)),
            asio::detached);
    }
};

using act = std::function<void(stage&)>;

/// One operation, from when it is started to its end.
struct scenario
{
    std::string name;
    act prepare;
    act verb;
    /// Empty where there is none.
    act front;
    /// What the world does whenever the context has nothing left to run, one after the other.
    std::vector<act> moves;
};

/// One of each verb, and of each way in which it may go on.
[[nodiscard]] const std::vector<scenario>& scenarios();

/// Runs one handler or makes one move; false if there is nothing more.
bool one_step(const scenario& scene, stage& on);
void begin(const scenario& scene, family how, stage& on);

template <class Check>
void for_every_scenario(Check check)
{
    for (const auto& scene : scenarios()) {
        for (const auto how : {family::verb, family::front}) {
            if (how == family::front && !scene.front)
                continue;
            BOOST_TEST_CONTEXT(scene.name << ", " << how)
            {
                check(scene, how);
            }
        }
    }
}

} // namespace colock::testing
