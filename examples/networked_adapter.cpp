// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// A custom backend with a server: an adapter with a TCP connection, and a lock server for it. The server is stopped and
// started again, and the adapter connects again at the next request.

#include "adapters/networked_adapter.hpp"
#include "adapters/lock_server.hpp"

#include <colock/locker.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

namespace {

using namespace std::chrono_literals;

asio::awaitable<void> use_server(colock::locker locker, std::optional<lock_server>& server)
{
    auto held = co_await locker.acquire("job");
    const auto first_fence = held.fence();
    std::cout << "locked keys: " << server->keys().size() << '\n';
    co_await held.release();
    std::cout << "locked keys: " << server->keys().size() << '\n';

    const auto port = server->endpoint().port();
    server.reset();
    // The adapter notices the loss of its connection.
    co_await colock::lease_timer(co_await asio::this_coro::executor, 50ms).async_wait(asio::deferred);
    try {
        co_await locker.try_acquire("job");
    } catch (const colock::error& failed) {
        std::cout << "stopped: " << (failed.code() == colock::errc::unavailable ? "unavailable" : failed.what())
                  << '\n';
    }

    server.emplace(port);
    held = co_await locker.acquire("job");
    std::cout << "started again: " << (held.fence() > first_fence ? "the fence has grown" : "an old fence") << '\n';
    co_await held.release();
}

} // namespace

int main()
{
    asio::io_context io;
    std::optional<lock_server> server(std::in_place);
    colock::locker locker(std::make_shared<networked_adapter>(io.get_executor(), server->endpoint()));
    asio::co_spawn(io, use_server(locker, server), [](std::exception_ptr failure) {
        if (failure)
            std::rethrow_exception(failure);
    });
    // Returns when the connection has been unused for a second, although the locker still exists.
    io.run();
    std::cout << "no work left\n";
}
