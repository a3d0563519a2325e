// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/acquire.hpp"

#include "command/exit_code.hpp"
#include "command/signal_source.hpp"
#include "command/terminal.hpp"
#include "util/text_escaping.hpp"

#include <colock/error.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <tuple>
#include <utility>

namespace command {

namespace asio = boost::asio;

namespace {

using namespace std::chrono_literals;
using colock::detail::printable;

/// Time after which the progress line is shown, and the interval at which it is written again.
constexpr std::chrono::milliseconds progress_interval = 1s;

std::string holder_of(const colock::lock_status& status)
{
    const bool is_process_id =
        !status.owner.empty() && std::ranges::all_of(status.owner, [](char c) { return c >= '0' && c <= '9'; });
    std::string text = ", held by ";
    if (is_process_id)
        text += printable(status.host) + " (pid " + status.owner + ')';
    else
        text += printable(status.owner) + " on " + printable(status.host);
    if (status.created)
        text += " for " + in_words(std::chrono::system_clock::now() - *status.created);
    return text;
}

/// Shows the holder of the first key that is held, until it is cancelled.
asio::awaitable<void> show_progress(colock::locker locker, std::vector<std::string> keys)
{
    asio::steady_timer timer(co_await asio::this_coro::executor);
    progress_line line;
    for (;;) {
        timer.expires_after(progress_interval);
        co_await timer.async_wait(asio::use_awaitable);
        if (keys.empty())
            continue;
        std::string text = "waiting for " + printable(keys.front());
        try {
            for (const std::string& key : keys) {
                const auto holders = co_await locker.list({.key = key});
                if (!holders.empty()) {
                    text = "waiting for " + printable(key) + holder_of(holders.front());
                    break;
                }
            }
        } catch (const colock::error&) {
            // The backend cannot list locks, or does not answer: the wait itself reports its errors.
        }
        line.show(text);
    }
}

} // namespace

asio::awaitable<std::vector<colock::lock>> acquire(
    colock::locker locker, std::vector<std::string> keys, colock::acquire_options options)
{
    std::vector<colock::lock> locks;
    if (keys.size() == 1) {
        locks.push_back(co_await locker.acquire(keys.front(), std::move(options)));
        co_return locks;
    }
    colock::lock_group group = co_await locker.acquire_all(keys, std::move(options));
    for (const std::string& key : keys)
        locks.push_back(group.take(key));
    co_return locks;
}

asio::awaitable<std::vector<colock::lock>> wait_interruptibly(asio::awaitable<std::vector<colock::lock>> acquiring,
    colock::locker locker, std::vector<std::string> watched_keys, signal_source& signals)
{
    const auto executor = co_await asio::this_coro::executor;
    asio::steady_timer interruption(executor, asio::steady_timer::time_point::max());
    int stop_signal = 0;
    signals.set_handler([&](int signal) {
        if (is_terminating(signal) || signal == SIGQUIT) {
            stop_signal = signal;
            interruption.cancel();
        }
    });
    auto result =
        co_await asio::experimental::make_parallel_group(asio::co_spawn(executor, std::move(acquiring), asio::deferred),
            asio::co_spawn(executor, show_progress(std::move(locker), std::move(watched_keys)), asio::deferred),
            interruption.async_wait(asio::deferred))
            .async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
    signals.set_handler(nullptr);
    auto& failure = std::get<1>(result);
    auto& locks = std::get<2>(result);
    if (stop_signal != 0) {
        for (colock::lock& each : locks)
            co_await each.release();
        throw exit_error(
            128 + stop_signal, std::string("SIG") + ::sigabbrev_np(stop_signal) + " has ended the wait for the lock");
    }
    if (failure)
        std::rethrow_exception(failure);
    co_return std::move(locks);
}

} // namespace command
