// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "alternation.hpp"
#include "statistics.hpp"
#include "zookeeper.hpp"

#include "../tools/built_backends.hpp"
#include "support/toxiproxy.hpp"

#include <colock/locker.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

using clock = std::chrono::steady_clock;

/// Delay of the connection, which is long compared to the server's processing time.
constexpr int link_ms = 20;

double since(clock::time_point start)
{
    return std::chrono::duration<double, std::milli>(clock::now() - start).count();
}

struct times
{
    std::vector<double> acquire{};
    std::vector<double> release{};
    std::vector<double> hand_off{};
    clock::time_point released{};
};

asio::awaitable<void> time_pairs(colock::locker locker, std::size_t count, times& found)
{
    for (std::size_t i = 0; i <= count; ++i) {
        auto start = clock::now();
        colock::lock lock = co_await locker.acquire("alone");
        // The first acquire of a key also creates the folder of the key.
        if (i > 0)
            found.acquire.push_back(since(start));
        start = clock::now();
        co_await lock.release();
        if (i > 0)
            found.release.push_back(since(start));
    }
}

/// Acquires and releases the key `count` times, and records the times from the previous release to the grant. The
/// other coroutine waits whenever this one holds the lock.
asio::awaitable<void> acquire_alternately(colock::locker locker, std::string key, std::size_t count, times& found)
{
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (std::size_t i = 0; i < count; ++i) {
        colock::lock lock = co_await locker.acquire(key);
        if (found.released != clock::time_point())
            found.hand_off.push_back(since(found.released));
        timer.expires_after(link_ms * 5 * 1ms);
        co_await timer.async_wait();
        found.released = clock::now();
        co_await lock.release();
    }
    found.released = {};
}

double typical_hand_off(
    asio::io_context& io, const std::vector<colock::locker>& both, std::string key, std::size_t count)
{
    times found;
    std::size_t running = both.size();
    for (const colock::locker& each : both)
        asio::co_spawn(io, acquire_alternately(each, key, count, found), [&](std::exception_ptr failed) {
            if (--running == 0 || failed)
                io.stop();
            if (failed)
                std::rethrow_exception(failed);
        });
    io.restart();
    io.run();
    return median(found.hand_off);
}

} // namespace

void measure_zookeeper_round_trips(const workload& at, const options& settings, report& results)
{
    colock::testing::toxiproxy link(static_cast<std::uint16_t>(std::stoi(at.port)));
    link.add("delay", "latency", "downstream", R"({"latency":)" + std::to_string(link_ms) + R"(,"jitter":0})");
    workload through = at;
    through.port = std::to_string(link.port());
    const auto url = "zookeeper://127.0.0.1:" + through.port;
    const auto count = std::max<std::size_t>(static_cast<std::size_t>(settings.seconds * 20.0), 5);

    asio::io_context io{1};
    const colock::locker one(colock::make_adapter(io.get_executor(), url, tools::built_backends()));
    const colock::locker other(colock::make_adapter(io.get_executor(), url, tools::built_backends()));
    times alone;
    run_until_done(io, time_pairs(one, count, alone));
    const auto locally = typical_hand_off(io, {one, one}, "local", count);
    const auto apart = typical_hand_off(io, {one, other}, "apart", count);
    const auto unit = median(time_raw_writes(through, count));

    // One round trip, and half of one for the overhead of the connection and the machine.
    constexpr double one_trip = 1.5;
    results.begin("ZooKeeper: through a link of " + std::to_string(link_ms) + " ms, medians");
    results.add({"a write", unit, "ms"});
    results.add({"acquire, in round trips", median(alone.acquire) / unit, "x", one_trip});
    results.add({"release, in round trips", median(alone.release) / unit, "x", one_trip});
    results.add({"release to the next grant of the same locker, in round trips", locally / unit, "x", one_trip});
    results.add({"release to the next grant of another process, in round trips", apart / unit, "x", one_trip + 1.0});
}

} // namespace bench
