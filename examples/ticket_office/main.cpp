// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// A ticket office with real sockets, and many clients that compete for its seats. With the lock, no seat is sold twice.
// --unlocked shows oversold seats.

#include "client.hpp"
#include "hall.hpp"
#include "office.hpp"
#include "summary.hpp"

#include "../../tools/arguments.hpp"
#include "../../tools/built_backends.hpp"

#include <colock/locker.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <iostream>
#include <string>

#include <unistd.h>

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

/// Shows the progress: on a terminal in one line that is overwritten, otherwise in a new line every second.
asio::awaitable<void> show_progress(const hall& seats, std::size_t capacity, clock_type::time_point start)
{
    const bool terminal = isatty(STDOUT_FILENO) == 1;
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (;;) {
        timer.expires_after(terminal ? 100ms : 1000ms);
        co_await timer.async_wait(asio::deferred);
        const std::chrono::duration<double> elapsed = clock_type::now() - start;
        const double rate = static_cast<double>(seats.sales()) / elapsed.count();
        std::cout << (terminal ? "\r\033[K" : "") << "  " << grouped(seats.sales()) << " of " << grouped(capacity)
                  << " seats sold, " << grouped(static_cast<std::uint64_t>(rate)) << " per second"
                  << (terminal ? "" : "\n") << std::flush;
    }
}

int main(int count, char** words)
try {
    std::string backend = "memory:";
    std::size_t clients = 300;
    std::size_t capacity = 15'000;
    int limit = 13;
    bool unlocked = false;
    if (const auto early = tools::arguments("ticket_office: many clients compete for the seats of a hall")
            .value("backend", backend, "URL", "URL of the lock service; default: memory:")
            .value("clients", clients, "N", "concurrent connections, 1 to 450; default: 300", 1, 450)
            .value("seats", capacity, "N", "number of seats, 1 to 1000000; default: 15000", 1, 1'000'000)
            .value("limit", limit, "SECONDS", "the office closes after this time; default: 13", 1, 3600)
            .flag("unlocked", unlocked, "sell without the lock, to show oversold seats")
            .parse(count, words))
        return *early;

    const std::chrono::milliseconds opening_time = limit * 1s;
    asio::io_context io{1};
    hall seats(capacity, 12);
    const auto adapter = colock::make_adapter(io.get_executor(), backend, tools::built_backends());
    const colock::locker locker(adapter, {.ttl = 5s, .retry = colock::within(opening_time / 2)});
    ticket_office office(locker, seats, !unlocked);
    std::cout << "ticket office: " << grouped(capacity) << " seats in " << seats.blocks() << " blocks, " << clients
              << " clients, " << (unlocked ? "no lock" : adapter->traits().name) << '\n';

    asio::ip::tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    const auto address = acceptor.local_endpoint();
    const auto start = clock_type::now();
    asio::co_spawn(io, office.listen(std::move(acceptor)), asio::detached);
    asio::co_spawn(io, show_progress(seats, capacity, start), asio::detached);
    std::size_t buying = clients;
    std::exception_ptr failure;
    for (std::size_t i = 0; i < clients; ++i) {
        asio::co_spawn(
            io, buy_everything(address, seats.blocks(), static_cast<unsigned>(i + 1)), [&](std::exception_ptr failed) {
                failure = failed ? failed : failure;
                if (failed || --buying == 0)
                    io.stop();
            });
    }
    io.run_for(opening_time);
    const auto elapsed = clock_type::now() - start;

    std::cout << (isatty(STDOUT_FILENO) ? "\r\033[K" : "");
    if (office.failure())
        std::rethrow_exception(office.failure());
    if (failure)
        std::rethrow_exception(failure);
    const bool is_consistent = print_summary(seats, capacity, !unlocked, office.waits(), elapsed);
    return is_consistent ? 0 : 1;
} catch (const std::exception& failure) {
    std::cerr << "error: " << failure.what() << '\n';
    return 2;
}
