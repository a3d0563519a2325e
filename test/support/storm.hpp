// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/random_mix.hpp"
#include "support/relay.hpp"
#include "support/witness.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace colock::testing {

/// The connection of one locker to the server.
struct way
{
    explicit way(std::uint16_t port) : link(port) {}

    relay link;
    bool fails = false;
    int inside = 0;
};

/// Coroutines that acquire a few keys in random ways. They check that no two of them hold conflicting locks.
struct crowd
{
    explicit crowd(std::uint32_t seed) : draw(seed) {}

    asio::awaitable<void> stay(locker by, way& over);
    asio::awaitable<void> stay_for(locker by, way& over, int turns);
    asio::awaitable<void> take_one(const locker& by, way& over);

    dice draw;
    std::array<witness, visitors::keys> seen;
    bool enough = false;
    /// True if a lock ends only by a release or by expiry. If false, mutual exclusion is not checked.
    bool is_safe = true;
    retry_policy retry = retry_policy::fixed(std::chrono::milliseconds(200));
    /// Limit of a wait. A waiter that reaches it has missed its wake-up, unless its connection was lost meanwhile.
    /// After a lost connection a waiter waits until its next retry.
    std::chrono::microseconds patience = std::chrono::minutes(10);
};

/// Injects two faults into the connection. A fault loses one message about a key, or lasts for twice `lease`, or for a
/// moment.
/// \param in_words returns how a key is encoded in a message
asio::awaitable<void> hurt(
    way& to, dice& draw, std::chrono::microseconds lease, std::function<std::string(const std::string&)> in_words);

/// Pauses the server twice, for twice `lease` or for a moment.
template <class Server>
asio::awaitable<void> hurt(Server& server, dice& draw, std::chrono::microseconds lease)
{
    for (int times = 0; times < 2; ++times) {
        co_await sleep_for(draw.time_below(std::chrono::milliseconds(800)));
        server.pause();
        co_await sleep_for(draw.once_in(2) ? 2 * lease : draw.time_below(std::chrono::milliseconds(300)));
        server.resume();
    }
}

/// Runs five coroutines for each locker. They run until all faults have ended, then for 20 turns without faults and
/// without retries.
void live_through(asio::io_context& io, crowd& all, const std::vector<locker>& lockers,
    const std::vector<std::unique_ptr<way>>& ways, std::vector<running<void>> faults);

/// A context that is run by several threads until this object is destroyed.
struct several_threads
{
    several_threads();
    several_threads(const several_threads&) = delete;
    several_threads& operator=(const several_threads&) = delete;
    ~several_threads();

    asio::io_context io{3};
    asio::executor_work_guard<asio::io_context::executor_type> works{io.get_executor()};
    std::array<std::thread, 3> threads;
};

/// State that is shared by coroutines on several threads.
struct progress
{
    visitors inside;
    std::atomic<int> grants{0};
    std::atomic<bool> enough{false};
};

asio::awaitable<void> visit_until_enough(locker by, progress& on, dice draw);

/// Runs six coroutines for each locker until `meanwhile` has returned. `meanwhile` runs in the caller's thread. Then
/// checks that no violation was found, and that all lockers shut down.
void visit_in_threads(several_threads& pool, progress& on, const std::vector<locker>& all, dice& draw,
    const std::function<void()>& meanwhile);

/// Destroys contexts while coroutines still use lockers, at a random moment. The lockers are destroyed before or after
/// their context.
struct doomed_contexts
{
    /// Makes the adapter of one of the three lockers of a round. Rounds must not see the locks of earlier rounds.
    std::function<std::shared_ptr<adapter>(asio::io_context& io, int round, std::chrono::milliseconds idle_timeout)>
        make;
    /// An additional fault in the middle of a round. It may end locks that are held.
    std::function<void()> trouble;
    std::function<void()> end_trouble;

    void run(way& over);
};

/// Waits until `reached` returns true. To be called from a thread that runs no handlers.
/// \throws stuck after one minute
void wait_until(const std::function<bool()>& reached);

} // namespace colock::testing
