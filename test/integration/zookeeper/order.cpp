// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "locker_fixture.hpp"
#include "support/in_shared_memory.hpp"
#include "support/process.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <sys/types.h>

namespace colock::testing {
namespace {

constexpr std::size_t processes = 5;
constexpr std::size_t lockers_per_process = 10;
constexpr std::size_t lockers = processes * lockers_per_process;
/// Number of calls: one of each locker, and a second one of the first holder.
constexpr std::size_t calls = lockers + 1;

/// Data shared by the processes.
struct shared_state
{
    /// Which locker makes each call, in the order of the calls.
    std::array<std::size_t, calls> callers{};
    /// Number of calls that may have been made.
    std::atomic<std::size_t> call_count{0};
    /// Which call was granted, in the order of the grants.
    std::array<std::atomic<std::size_t>, calls> granted{};
    std::atomic<std::size_t> grant_count{0};
};

asio::awaitable<void> hold_until_all_called(locker by, shared_state& all, std::size_t call)
{
    auto held = co_await by.acquire("k");
    all.granted[all.grant_count++] = call;
    asio::steady_timer pause(co_await asio::this_coro::executor);
    while (all.call_count < calls) {
        pause.expires_after(1ms);
        co_await pause.async_wait(asio::use_awaitable);
    }
    co_await held.release(on_failure::raise);
}

/// Runs the process with this number.
void run_process(shared_state& all, std::size_t number, std::uint16_t port)
{
    locker_fixture own(zookeeper_url(port), [port] { return port; });
    std::vector<locker*> mine;
    for (std::size_t i = 0; i < lockers_per_process; ++i)
        mine.push_back(&own.add());
    std::vector<running<void>> taken;
    std::size_t handled_count = 0;
    own.until([&] {
        for (; handled_count < all.call_count; ++handled_count) {
            const auto caller = all.callers[handled_count];
            if (caller / lockers_per_process == number)
                taken.push_back(
                    start(own.io, hold_until_all_called(*mine[caller % lockers_per_process], all, handled_count)));
        }
        return all.grant_count == calls && std::ranges::all_of(taken, [](const auto& each) { return each.done(); });
    });
    for (auto& each : taken)
        each.get(own.io);
    for (auto* const each : mine)
        own.run(each->shutdown(5s));
}

} // namespace

BOOST_AUTO_TEST_SUITE(zookeeper_order)

BOOST_AUTO_TEST_CASE(fifty_lockers_in_five_processes_are_granted_in_the_order_of_their_calls)
{
    const zookeeper_server server;
    std::minstd_rand random(11);
    for (int round = 0; round < 3; ++round) {
        const in_shared_memory<shared_state> all;
        std::vector<std::size_t> order(lockers);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::shuffle(order, random);
        order.insert(order.begin() + lockers / 2, order.front());
        std::ranges::copy(order, all->callers.begin());

        std::vector<pid_t> children;
        for (std::size_t i = 0; i < processes; ++i)
            children.push_back(in_child([&] { run_process(*all.operator->(), i, server.port()); }));
        locker_fixture outside("", [&] { return server.port(); });
        for (std::size_t i = 0; i < calls; ++i) {
            all->call_count = i + 1;
            // The next call begins when this one is in the lock queue.
            if (i + 1 < calls)
                outside.until([&] { return outside.nodes().size() == i + 1; });
        }
        for (const auto each : children)
            BOOST_TEST(wait_for(each) == 0);
        BOOST_TEST(all->grant_count.load() == calls);
        for (std::size_t i = 0; i < calls; ++i)
            BOOST_TEST(all->granted[i].load() == i);
        outside.check_end();
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
