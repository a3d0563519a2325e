// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "support/faulty_proxy.hpp"
#include "support/grant_checker.hpp"
#include "support/random_mix.hpp"

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
struct faulty_connection
{
    explicit faulty_connection(std::uint16_t port) : link(port) {}

    faulty_proxy link;
    bool fails = false;
    int inside = 0;
};

/// Coroutines that acquire a few keys at random. They check that no two of them hold conflicting locks.
struct random_clients
{
    explicit random_clients(std::uint32_t seed) : draw(seed) {}

    asio::awaitable<void> acquire_until_enough(locker by, faulty_connection& over);
    asio::awaitable<void> acquire_times(locker by, faulty_connection& over, int count);
    asio::awaitable<void> acquire_once(const locker& by, faulty_connection& over);

    random_source draw;
    std::array<grant_checker, exclusion_checker::keys> seen;
    bool enough = false;
    /// True if a lock ends only by a release or by expiry. If false, mutual exclusion is not checked.
    bool is_safe = true;
    retry_policy retry = retry_policy::fixed(std::chrono::milliseconds(200));
    /// Limit of a wait. A waiter that reaches it has missed its wake-up, unless its connection was lost meanwhile.
    /// After a lost connection a waiter waits until its next retry.
    std::chrono::microseconds max_wait = std::chrono::minutes(10);
};

/// Injects two faults into the connection. A fault loses one message about a key, or lasts for twice `lease`, or for a
/// moment.
/// \param encode_key returns how a key is encoded in a message
asio::awaitable<void> inject_faults(faulty_connection& to, random_source& draw, std::chrono::microseconds lease,
    std::function<std::string(const std::string&)> encode_key);

/// Pauses the server twice, for twice `lease` or for a moment.
template <class Server>
asio::awaitable<void> inject_faults(Server& server, random_source& draw, std::chrono::microseconds lease)
{
    for (int times = 0; times < 2; ++times) {
        co_await sleep_for(draw.time_below(std::chrono::milliseconds(800)));
        server.pause();
        co_await sleep_for(draw.once_in(2) ? 2 * lease : draw.time_below(std::chrono::milliseconds(300)));
        server.resume();
    }
}

/// Runs five coroutines for each locker. They run until all faults have ended. Then each acquires 20 times without
/// faults and without retries.
void run_through_faults(asio::io_context& io, random_clients& all, const std::vector<locker>& lockers,
    const std::vector<std::unique_ptr<faulty_connection>>& connections, std::vector<running<void>> faults);

/// A context that is run by several threads until this object is destroyed.
struct threaded_context
{
    threaded_context();
    threaded_context(const threaded_context&) = delete;
    threaded_context& operator=(const threaded_context&) = delete;
    ~threaded_context();

    asio::io_context io{3};
    asio::executor_work_guard<asio::io_context::executor_type> works{io.get_executor()};
    std::array<std::thread, 3> threads;
};

/// State that is shared by coroutines on several threads.
struct progress
{
    exclusion_checker inside;
    std::atomic<int> grants{0};
    std::atomic<bool> enough{false};
};

asio::awaitable<void> acquire_in_threads_until_enough(locker by, progress& env, random_source draw);

/// Runs six coroutines for each locker until `meanwhile` has returned. `meanwhile` runs in the caller's thread. Then
/// checks that no violation was found, and that all lockers shut down.
void run_in_threads(threaded_context& pool, progress& env, const std::vector<locker>& all, random_source& draw,
    const std::function<void()>& meanwhile);

/// Destroys contexts while coroutines still use lockers, at a random moment. The lockers are destroyed before or after
/// their context.
struct context_destruction_test
{
    /// Makes the adapter of one of the three lockers of a round. Rounds must not see the locks of earlier rounds.
    std::function<std::shared_ptr<adapter>(asio::io_context& io, int round, std::chrono::milliseconds idle_timeout)>
        make;
    /// An additional fault in the middle of a round. It may end locks that are held.
    std::function<void()> inject_fault;
    std::function<void()> end_fault;

    void run(faulty_connection& over);
};

/// Waits until `reached` returns true. To be called from a thread that runs no handlers.
/// \throws stuck after one minute
void wait_until(const std::function<bool()>& reached);

} // namespace colock::testing
