// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "alternation.hpp"
#include "statistics.hpp"
#include "zookeeper.hpp"

#include "../tools/built_backends.hpp"
#include "support/toxiproxy.hpp"

#include <colock/locker.hpp>
#include <colock/observer.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

using clock = std::chrono::steady_clock;

struct reconnections final : colock::observer
{
    void reconnected(std::string_view) noexcept override { ++count; }
    int count = 0;
};

asio::awaitable<void> acquire_some(
    colock::locker locker, std::size_t begin, std::size_t end, std::vector<colock::lock>& held)
{
    for (std::size_t i = begin; i < end; ++i)
        held.push_back(co_await locker.acquire("resumed:" + std::to_string(i), {.ttl = 0ms}));
}

/// Waits until the locks that were let go are released. The operations of a client begin in order.
asio::awaitable<void> release_all(colock::locker locker, std::vector<colock::lock>& held)
{
    held.clear();
    colock::lock last = co_await locker.acquire("resumed:last");
    co_await last.release();
}

/// Returns the median time in milliseconds from the loss of a connection until the session is verified at the same
/// server. The locks are granted just before.
double time_resumptions(const workload& at, std::size_t size)
{
    constexpr int times = 3;
    constexpr std::size_t in_flight = 250;
    colock::testing::toxiproxy link(static_cast<std::uint16_t>(std::stoi(at.port)));
    asio::io_context io{1};
    const auto seen = std::make_shared<reconnections>();
    const colock::locker locker(colock::make_adapter(io.get_executor(),
                                    "zookeeper://127.0.0.1:" + std::to_string(link.port()), tools::built_backends()),
        colock::locker_options{.observer = seen});
    std::vector<double> found;
    std::vector<colock::lock> held;
    for (int i = 0; i < times; ++i) {
        io.restart();
        const auto part = (size + in_flight - 1) / in_flight;
        for (std::size_t begin = 0; begin < size; begin += part)
            asio::co_spawn(io, acquire_some(locker, begin, std::min(begin + part, size), held), asio::detached);
        while (held.size() < size)
            io.run_one();
        // The context does not run in between, so the first attempt to connect succeeds.
        link.enable(false);
        link.enable(true);
        const auto start = clock::now();
        for (const auto before = seen->count; seen->count == before;)
            io.run_one();
        found.push_back(std::chrono::duration<double, std::milli>(clock::now() - start).count());
        run_until_done(io, release_all(locker, held));
    }
    return median(found);
}

} // namespace

void measure_zookeeper_resumptions(const workload& at, report& results)
{
    results.begin("ZooKeeper: a session is resumed at the same server");
    for (const std::size_t size : {std::size_t{1}, std::size_t{10'000}})
        results.add({"holder of " + std::to_string(size) + " locks, granted just before, median of 3",
            time_resumptions(at, size), "ms"});
}

} // namespace bench
