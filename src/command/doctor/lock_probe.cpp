// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/doctor/lock_probe.hpp"

#include "command/doctor/text.hpp"

#include <colock/error.hpp>
#include <colock/logging_observer.hpp>
#include <colock/observer_list.hpp>
#ifdef COLOCK_BUILT_MONGO
#include <colock/mongo/adapter.hpp>
#endif

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace command {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr const char* probe_key = "colock-doctor";
constexpr std::chrono::milliseconds probe_ttl = 10s;
constexpr std::chrono::milliseconds max_wait = 5s;
/// A waiter needs some round trips until the server notifies it of a release.
constexpr std::chrono::milliseconds time_to_subscribe = 300ms;
constexpr std::size_t measurements = 5;

/// Collects the warnings of the adapters. Each text is kept once.
class warning_collector final : public colock::observer
{
public:
    void unreachable(std::string_view, const colock::error_code& error, std::string_view address,
        std::string_view detail) noexcept override
    {
        add(unreachable_,
            std::string(address) + " cannot be reached: " + (detail.empty() ? error.message() : std::string(detail)));
    }
    void warning(std::string_view, std::string_view message) noexcept override
    {
        add(found_.texts, std::string(message));
    }
    void ready(std::string_view) noexcept override
    {
        const std::lock_guard guard(mutex_);
        found_.are_complete = true;
    }

    /// Returns the warnings. Addresses that could not be reached are left out if the error of the lock names them.
    [[nodiscard]] adapter_warnings take(bool is_available)
    {
        const std::lock_guard guard(mutex_);
        if (is_available)
            found_.texts.insert(found_.texts.end(), unreachable_.begin(), unreachable_.end());
        return std::move(found_);
    }

private:
    void add(std::vector<std::string>& texts, std::string text)
    {
        const std::lock_guard guard(mutex_);
        if (std::ranges::find(texts, text) == texts.end())
            texts.push_back(std::move(text));
    }

    std::mutex mutex_;
    adapter_warnings found_{.are_complete = false, .texts = {}};
    std::vector<std::string> unreachable_;
};

struct participants
{
    std::shared_ptr<colock::adapter> first_adapter;
    std::shared_ptr<colock::adapter> second_adapter;
    colock::locker first;
    colock::locker second;
};

asio::awaitable<void> pause(std::chrono::milliseconds duration)
{
    asio::steady_timer timer(co_await asio::this_coro::executor, duration);
    co_await timer.async_wait(asio::deferred);
}

/// Stores how waiters of a MongoDB adapter are notified.
void note_waiting(const colock::adapter& waiter, server_values& values)
{
#ifdef COLOCK_BUILT_MONGO
    if (waiter.traits().name == "mongodb") {
        const bool polls = colock::mongo::waiting(waiter) == colock::mongo::waiting_by::poll;
        values.set("waiting", polls ? "not used: waiters poll" : "used");
    }
#else
    static_cast<void>(waiter), static_cast<void>(values);
#endif
}

/// Measures how long after a release a waiter of another connection has the lock.
asio::awaitable<void> measure_wake_up(participants all, server_values& values)
{
    // The second adapter connects.
    static_cast<void>(co_await all.second.is_locked(probe_key));
    auto held = co_await all.first.try_acquire(probe_key, max_wait);
    if (!held)
        co_return;
    std::optional<clock::time_point> granted_at;
    asio::steady_timer notification(co_await asio::this_coro::executor, clock::time_point::max());
    // The closure outlives the coroutine, because this function waits for `notification`.
    const auto wait_for_lock = [&]() -> asio::awaitable<void> {
        if (auto lock = co_await all.second.try_acquire(probe_key, max_wait)) {
            granted_at = clock::now();
            co_await lock->release();
        }
    };
    bool has_ended = false;
    std::exception_ptr failure;
    asio::co_spawn(co_await asio::this_coro::executor, wait_for_lock, [&](std::exception_ptr problem) {
        failure = std::move(problem);
        has_ended = true;
        notification.cancel();
    });
    co_await pause(time_to_subscribe);
    note_waiting(*all.second_adapter, values);
    const auto released_at = clock::now();
    co_await held->release();
    if (!has_ended)
        co_await notification.async_wait(asio::as_tuple(asio::deferred));
    if (failure)
        std::rethrow_exception(failure);
    if (granted_at)
        values.set("wake_up", milliseconds_text(*granted_at - released_at));
}

asio::awaitable<void> use_lock(participants all, server_values& values)
{
    const auto started = clock::now();
    auto held = co_await all.first.try_acquire(probe_key, max_wait);
    if (!held) {
        values.set("locking", "not checked");
        values.set("failure", std::string("the key ") + probe_key +
                                  " is held; wait for the end of the other doctor, or run "
                                  "'colock break colock-doctor'");
        co_return;
    }
    values.set("connect_time", milliseconds_text(clock::now() - started));
    const bool is_locked = co_await all.first.is_locked(probe_key);
    co_await held->release();
    std::vector<clock::duration> times;
    while (times.size() < measurements) {
        const auto begin = clock::now();
        auto lock = co_await all.first.try_acquire(probe_key, max_wait);
        times.push_back(clock::now() - begin);
        if (lock)
            co_await lock->release();
    }
    std::ranges::sort(times);
    values.set("lock_time", milliseconds_text(times[measurements / 2]));
    values.set("locking", "acquire, is_locked and release work");
    if (!is_locked)
        values.set("failure", "a lock that was granted is not stored; is another program deleting keys?");
    co_await measure_wake_up(all, values);
    try {
        static_cast<void>(co_await all.first.list({.key_prefix = probe_key}));
        values.set("list", "works");
    } catch (const colock::error& problem) {
        if (problem.code() == colock::errc::unsupported)
            values.set("list", "not supported by this backend");
        else
            values.set_unknown("list", problem.what());
    }
}

asio::awaitable<void> probe(participants all, lock_probe& result)
{
    try {
        co_await use_lock(all, result.values);
    } catch (const boost::system::system_error& problem) {
        result.values.set("locking", "fails");
        result.values.set("failure", problem.what());
        if (problem.code() == colock::errc::unavailable || problem.code() == colock::errc::outcome_unknown)
            result.unavailable = std::current_exception();
    }
    co_await all.first.shutdown();
    co_await all.second.shutdown();
}

} // namespace

lock_probe probe_lock(const invocation& call, const backend_address& address)
{
    asio::io_context io(1);
    const auto collector = std::make_shared<warning_collector>();
    colock::locker_options options{.ttl = probe_ttl, .observer = collector};
    if (call.flag("verbose")) {
        options.observer = std::make_shared<colock::observer_list>(
            collector, std::make_shared<colock::logging_observer>(
                           std::cerr, colock::logging_options{.level = colock::log_level::debug}));
    }
    const auto first = open_adapter(io.get_executor(), address);
    const auto second = open_adapter(io.get_executor(), address);
    lock_probe result;
    std::exception_ptr failure;
    asio::co_spawn(io,
        probe({.first_adapter = first,
                  .second_adapter = second,
                  .first = colock::locker(first, options),
                  .second = colock::locker(second, options)},
            result),
        [&failure](std::exception_ptr problem) { failure = std::move(problem); });
    io.run();
    if (failure)
        std::rethrow_exception(failure);
    result.warnings = collector->take(!result.unavailable);
    return result;
}

} // namespace command
