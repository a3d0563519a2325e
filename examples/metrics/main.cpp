// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Metrics for Prometheus next to some locks: `curl http://127.0.0.1:PORT/metrics`. Two workers for each tenant make
// reports, one at a time. One lock is forgotten and expires. The program serves the metrics until it is stopped.

#include "server.hpp"

#include "../../tools/arguments.hpp"
#include "../../tools/built_backends.hpp"

#include <colock/locker.hpp>
#include <colock/logging_observer.hpp>
#include <colock/metrics.hpp>
#include <colock/observer_list.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <chrono>
#include <csignal>
#include <exception>
#include <iostream>
#include <memory>
#include <string>

using namespace std::chrono_literals;

asio::awaitable<void> rest(std::chrono::milliseconds span)
{
    co_await asio::steady_timer(co_await asio::this_coro::executor, span).async_wait(asio::deferred);
}

/// Makes reports of one tenant. The keys of a tenant have the same prefix, so the metrics tell the tenants apart.
asio::awaitable<void> make_reports(colock::locker locker, std::string tenant, unsigned count)
{
    for (unsigned n = 0; n < count; ++n)
        co_await locker.with_lock(tenant + ":report", [] { return rest(5ms); });
}

asio::awaitable<void> forget_a_lock(colock::locker locker)
{
    const colock::lock forgotten = co_await locker.acquire("forgotten", {.ttl = 300ms});
    if (co_await locker.try_acquire("forgotten"))
        throw std::logic_error("a lock was granted twice");
    co_await forgotten.lost();
}

void rethrow(std::exception_ptr failure)
{
    if (failure)
        std::rethrow_exception(failure);
}

int main(int count, char** words)
try {
    std::string backend = "memory:";
    unsigned tenants = 3;
    unsigned reports = 5;
    if (const auto early = tools::arguments("metrics: metrics of locks over HTTP, on a free port of 127.0.0.1")
            .value("backend", backend, "URL", "URL of the lock service; default: memory:")
            .value("tenants", tenants, "N", "number of tenants; default: 3", 1, 10'000)
            .value("reports", reports, "N", "number of reports of each worker; default: 5", 1, 1'000'000)
            .parse(count, words))
        return *early;

    asio::io_context io{1};
    const auto adapter = colock::make_adapter(io.get_executor(), backend, tools::built_backends());
    const auto counted = std::make_shared<colock::metrics>();
    const auto log = std::make_shared<colock::logging_observer>(std::clog);
    const colock::locker locker(
        adapter, {.ttl = 5s, .observer = std::make_shared<colock::observer_list>(counted, log)});

    asio::ip::tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    std::cout << "listening on http://127.0.0.1:" << acceptor.local_endpoint().port() << "/metrics" << std::endl;
    asio::co_spawn(io, listen(std::move(acceptor), [=] { return counted->text({locker}, {adapter}); }), rethrow);

    unsigned unfinished = 2 * tenants + 1;
    const auto on_finished = [&unfinished](std::exception_ptr failure) {
        rethrow(failure);
        if (--unfinished == 0)
            std::cout << "all reports are made" << std::endl;
    };
    asio::co_spawn(io, forget_a_lock(locker), on_finished);
    for (unsigned tenant = 0; tenant < tenants; ++tenant) {
        for (int worker = 0; worker < 2; ++worker)
            asio::co_spawn(io, make_reports(locker, "tenant" + std::to_string(tenant), reports), on_finished);
    }
    asio::signal_set stop(io, SIGINT, SIGTERM);
    stop.async_wait([&io](auto...) { io.stop(); });
    io.run();
} catch (const std::exception& failure) {
    std::cerr << "error: " << failure.what() << '\n';
    return 2;
}
