// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "allocations.hpp"
#include "contention.hpp"
#include "mongo.hpp"

#include <colock/locker.hpp>
#include <colock/mongo/adapter.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <string>

#include <malloc.h>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

void measure_waiter(const options& settings, report& results)
{
    constexpr std::size_t many = 1000;
    contention waiting(settings.backend, 1);
    const auto at_once = [] { return true; };
    waiting.hold();
    waiting.start_waiters(many / 10, at_once);
    waiting.finish();
    waiting.hold();
    const byte_count counted;
    waiting.start_waiters(many, at_once);
    results.add({"a waiter, one of " + std::to_string(many) + " on one key, heap",
        static_cast<double>(counted.grown()) / many, "bytes", 2048.0, kind::counted});
    waiting.finish();
}

/// Starts operations repeatedly until all connections are open.
void open_all(asio::io_context& io, const colock::locker& locker, std::size_t connections)
{
    for (int round = 0; round < 5; ++round) {
        std::size_t running = 4 * connections;
        for (std::size_t i = 0; i < 4 * connections; ++i) {
            asio::co_spawn(
                io,
                [](colock::locker one, std::string key, std::size_t& left) -> asio::awaitable<void> {
                    // is_locked() is used because acquires at the same time would share two connections.
                    static_cast<void>(co_await one.is_locked(std::move(key)));
                    --left;
                }(locker, "connection:" + std::to_string(i), running),
                asio::detached);
        }
        while (running > 0) {
            io.restart();
            io.run_one();
        }
    }
}

/// The resident set includes the stacks of the fibers and the driver's clients, which the heap count does not.
double resident_with(const options& settings, std::size_t connections)
{
    asio::io_context io{1};
    const colock::locker locker(colock::mongo::make_adapter(
        io.get_executor(), {.url = settings.backend, .idle_timeout = 1min, .connections = connections}));
    open_all(io, locker, connections);
    malloc_trim(0);
    return static_cast<double>(resident_bytes());
}

void measure_connection(const options& settings, report& results)
{
    constexpr std::size_t few = 2;
    constexpr std::size_t many = 34;
    // The first adapter also allocates the state that all clients of the driver share.
    static_cast<void>(resident_with(settings, many));
    const double before = resident_with(settings, few);
    const double after = resident_with(settings, many);
    results.add({"a connection, resident set", (after - before) / (many - few), "bytes", 80.0 * 1024});
}

} // namespace

void measure_mongo_memory(const options& settings, report& results)
{
    results.begin("MongoDB: memory, the caller's coroutine included");
    measure_waiter(settings, results);
    measure_connection(settings, results);
}

} // namespace bench
