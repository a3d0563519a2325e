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

/// To the server, for one locker.
struct way
{
    explicit way(std::uint16_t port) : link(port) {}

    relay link;
    bool fails = false;
    int inside = 0;
};

/// Some that want a few locks in every way, at random, and see to it that nobody has one that another believes in.
struct crowd
{
    explicit crowd(std::uint32_t seed) : draw(seed) {}

    asio::awaitable<void> stay(locker by, way& over);
    asio::awaitable<void> stay_for(locker by, way& over, int turns);
    asio::awaitable<void> take_one(const locker& by, way& over);

    dice draw;
    std::array<witness, visitors::keys> seen;
    bool enough = false;
    /// What is held ends by its owner, or by time.
    bool is_safe = true;
    retry_policy retry = retry_policy::fixed(std::chrono::milliseconds(200));
    /// Whoever waits for longer was forgotten, unless his connection was lost meanwhile: then he waits until he tries
    /// again by himself.
    std::chrono::microseconds patience = std::chrono::minutes(10);
};

/// Hurts the way twice: it loses one message about a key, or fails for longer than `lease`, or for a moment.
/// \param in_words how a key stands in a message
asio::awaitable<void> hurt(
    way& to, dice& draw, std::chrono::microseconds lease, std::function<std::string(const std::string&)> in_words);

/// Pauses the server twice, for longer than that or for a moment.
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

/// A locker for each way, with five coroutines each: while the faults go on; then, when nothing fails and nobody tries
/// again by himself, for 20 turns each.
void live_through(asio::io_context& io, crowd& all, const std::vector<locker>& lockers,
    const std::vector<std::unique_ptr<way>>& ways, std::vector<running<void>> faults);

/// Handlers run on several threads until it goes.
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

/// Of those that run on several threads.
struct progress
{
    visitors inside;
    std::atomic<int> grants{0};
    std::atomic<bool> enough{false};
};

asio::awaitable<void> visit_until_enough(locker by, progress& on, dice draw);

/// Six coroutines for each locker visit until `meanwhile` is over, which runs in the caller's thread; nothing is wrong
/// then, and the lockers have shut down.
void visit_in_threads(several_threads& pool, progress& on, const std::vector<locker>& all, dice& draw,
    const std::function<void()>& meanwhile);

/// Contexts that go in the midst of a crowd's work, whatever is under way, and whether its lockers go before or after.
struct doomed_contexts
{
    /// For one of three lockers of a round, which finds nothing of the rounds before.
    std::function<std::shared_ptr<adapter>(asio::io_context& io, int round, std::chrono::milliseconds idle_timeout)>
        make;
    /// What else may happen in the middle of a round, beside a link that fails; what is held may end by it.
    std::function<void()> trouble;
    std::function<void()> end_trouble;

    void run(way& over);
};

/// For a thread that runs no handlers.
/// \throws stuck after a minute
void wait_until(const std::function<bool()>& reached);

} // namespace colock::testing
