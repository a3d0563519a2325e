// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <colock/error.hpp>
#include <colock/locker.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <chrono>
#include <functional>
#include <iostream>
#include <string>

namespace asio = boost::asio;
using namespace std::chrono_literals;

//[ election
// Runs until the locker is shut down, or the coroutine is cancelled. Another process may lead after `lead` has ended.
inline asio::awaitable<void> stand_for_election(
    colock::locker locker, std::string office, std::function<asio::awaitable<void>(colock::lock&)> lead)
{
    asio::steady_timer pause(co_await asio::this_coro::executor);
    for (;;) {
        try {
            co_await locker.with_lock(office, [&](colock::lock& held) { return lead(held); });
        } catch (const colock::error& failure) {
            if (colock::is_shutting_down(failure))
                co_return; // the program ends, see the recipe "SIGTERM"
            std::clog << "does not lead: " << failure.what() << std::endl;
        }
        // The lock was lost, or the backend is unavailable. The delay avoids a busy loop.
        pause.expires_after(200ms);
        co_await pause.async_wait(asio::deferred);
    }
}
//]
