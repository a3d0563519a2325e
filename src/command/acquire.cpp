// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "command/acquire.hpp"

#include "command/exit_code.hpp"
#include "command/signal_source.hpp"
#include "util/text_escaping.hpp"

#include <colock/error.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
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

interruptible_wait::interruptible_wait(const asio::any_io_executor& executor, colock::locker locker,
    std::vector<std::string> watched_keys, signal_source& signals)
    : locker_(std::move(locker)), watched_keys_(std::move(watched_keys)), signals_(signals),
      interruption_(executor, asio::steady_timer::time_point::max())
{
    attach_signals();
}

interruptible_wait::~interruptible_wait()
{
    signals_.set_handler(nullptr);
}

void interruptible_wait::detach_signals()
{
    has_locks_ = true;
    line_.clear();
    signals_.set_handler(nullptr);
}

void interruptible_wait::attach_signals()
{
    has_locks_ = false;
    signals_.set_handler([this](int signal) {
        if (is_terminating(signal) || signal == SIGQUIT) {
            signal_ = signal;
            end();
        }
    });
}

asio::awaitable<void> interruptible_wait::show_progress()
{
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (;;) {
        timer.expires_after(progress_interval);
        co_await timer.async_wait(asio::use_awaitable);
        if (watched_keys_.empty() || has_locks_)
            continue;
        std::string text = "waiting for " + printable(watched_keys_.front());
        try {
            for (const std::string& key : watched_keys_) {
                const auto holders = co_await locker_.list({.key = key});
                if (!holders.empty()) {
                    text = "waiting for " + printable(key) + holder_of(holders.front());
                    break;
                }
            }
        } catch (const colock::error&) {
            // The backend cannot list locks, or does not answer: the wait itself reports its errors.
        }
        if (!has_locks_)
            line_.show(text);
    }
}

asio::awaitable<void> interruptible_wait::run(asio::awaitable<void> operation)
{
    if (signal_ != 0) // The signal arrived before this call.
        co_return;
    const auto executor = co_await asio::this_coro::executor;
    auto result =
        co_await asio::experimental::make_parallel_group(asio::co_spawn(executor, std::move(operation), asio::deferred),
            asio::co_spawn(executor, show_progress(), asio::deferred), interruption_.async_wait(asio::deferred))
            .async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
    line_.clear();
    if (const auto& failure = std::get<1>(result))
        std::rethrow_exception(failure);
}

void interruptible_wait::throw_if_interrupted() const
{
    if (signal_ != 0) {
        throw exit_error(
            128 + signal_, std::string("SIG") + ::sigabbrev_np(signal_) + " has ended the wait for the lock");
    }
}

asio::awaitable<std::vector<colock::lock>> wait_interruptibly(asio::awaitable<std::vector<colock::lock>> operation,
    colock::locker locker, std::vector<std::string> watched_keys, signal_source& signals)
{
    interruptible_wait wait(co_await asio::this_coro::executor, std::move(locker), std::move(watched_keys), signals);
    std::vector<colock::lock> locks;
    const auto store = [&]() -> asio::awaitable<void> { locks = co_await std::move(operation); };
    std::exception_ptr failure;
    try {
        co_await wait.run(store());
    } catch (...) {
        failure = std::current_exception();
    }
    wait.throw_if_interrupted(); // The destructors of the locks release them, and the shutdown waits for that.
    if (failure)
        std::rethrow_exception(failure);
    co_return locks;
}

} // namespace command
