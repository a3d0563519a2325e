// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Reservations over HTTP: `curl -X POST http://127.0.0.1:PORT/reserve/A12`. The status is 200 on success, 409 if the
// seat is taken, and 503 if the lock is busy or its backend is unavailable until the time limit. Servers with the same
// backend and the same folder sell the same seats.

#include "desk.hpp"
#include "seats.hpp"
#include "server.hpp"

#include "../../tools/arguments.hpp"
#include "../../tools/built_backends.hpp"

#include <colock/locker.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>

#include <chrono>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>

using namespace std::chrono_literals;

int main(int count, char** words)
try {
    std::string backend = "memory:";
    std::string folder = "seats";
    unsigned limit = 1000;
    unsigned hold = 20;
    if (const auto early = tools::arguments("reserve: reservations over HTTP, on a free port of 127.0.0.1")
            .value("backend", backend, "URL", "URL of the lock service; default: memory:")
            .value("folder", folder, "FOLDER", "folder of the reservations; default: seats")
            .value("limit-ms", limit, "N", "longest wait of a request for a lock, in ms; default: 1000", 1, 3'600'000)
            .value("hold-ms", hold, "N", "duration of a reservation, in ms; default: 20", 0, 3'600'000)
            .parse(count, words))
        return *early;

    asio::io_context io{1};
    const seats hall(folder, std::chrono::milliseconds(hold));
    const colock::locker locker(colock::make_adapter(io.get_executor(), backend, tools::built_backends()), {.ttl = 5s});
    const desk clerk(locker, hall, std::chrono::milliseconds(limit));
    asio::ip::tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    std::cout << "listening on http://127.0.0.1:" << acceptor.local_endpoint().port() << std::endl;
    asio::co_spawn(io, listen(std::move(acceptor), clerk), [](std::exception_ptr failure) {
        if (failure)
            std::rethrow_exception(failure);
    });
    asio::signal_set stop(io, SIGINT, SIGTERM);
    stop.async_wait([&io](auto...) { io.stop(); });
    io.run();
} catch (const std::exception& failure) {
    std::cerr << "error: " << failure.what() << '\n';
    return 2;
}
