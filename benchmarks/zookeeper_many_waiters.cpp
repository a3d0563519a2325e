// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "../tools/built_backends.hpp"
#include "alternation.hpp"
#include "longest_handler.hpp"
#include "received_bytes.hpp"
#include "zookeeper.hpp"

#include <colock/locker.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace bench {
namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start)
{
    return std::chrono::duration<double>(clock::now() - start).count();
}

/// Many waiters for one key that another locker holds.
class queue_for_one_key
{
public:
    queue_for_one_key(const std::string& url, std::size_t sessions)
    {
        for (std::size_t i = 0; i < sessions; ++i)
            adapters_.push_back(colock::make_adapter(io_.get_executor(), url, tools::built_backends()));
        holder_.emplace(adapters_.front());
        run_until_done(io_, acquire(*this));
    }

    /// Starts the waiters, and returns when all of them wait.
    /// \param apart whether each waiter has its own locker, as in its own process
    void start_waiters(
        std::size_t count, bool apart, const colock::acquire_options& options, std::chrono::milliseconds hold)
    {
        lockers_.clear();
        while (lockers_.size() < (apart ? count : 1))
            lockers_.emplace_back(adapters_[lockers_.size() % adapters_.size()]);
        waiters_ = count;
        for (std::size_t i = 0; i < count; ++i) {
            asio::co_spawn(io_, wait(*this, lockers_[i % lockers_.size()], options, hold), asio::detached);
            // Runs the ready handlers after every 50 waiters, because a program rarely starts thousands in one handler.
            if (i % 50 == 49)
                io_.poll();
        }
        const auto waiting = [this] {
            std::size_t all = 0;
            for (const colock::locker& each : lockers_)
                all += each.stats().waiting;
            return all;
        };
        run_while([&] { return waiting() < count; }, 120s);
        check();
    }
    void idle(std::chrono::milliseconds time)
    {
        run_for(time);
        check();
    }
    /// Releases the holder's lock.
    void release()
    {
        check();
        held_.reset();
    }
    /// Runs until all waiters have held the lock. Returns the longest handler of the event loop.
    longest_time serve()
    {
        return longest_handler(io_, [this] { return served_ < waiters_; });
    }

private:
    /// \throws std::runtime_error if the holder has lost the lock, which makes the measurement invalid
    void check() const
    {
        if (held_ && !held_->held())
            throw std::runtime_error("the holder has lost the lock while others wait");
    }
    static asio::awaitable<void> acquire(queue_for_one_key& self)
    {
        self.held_ = co_await self.holder_->acquire("queue", {.ttl = 0ms});
    }
    static asio::awaitable<void> wait(
        queue_for_one_key& self, colock::locker locker, colock::acquire_options options, std::chrono::milliseconds hold)
    {
        colock::lock lock = co_await locker.acquire("queue", options);
        if (hold > 0ms) {
            asio::steady_timer timer(co_await asio::this_coro::executor, hold);
            co_await timer.async_wait();
        }
        co_await lock.release();
        ++self.served_;
    }
    void run_while(const std::function<bool()>& more, std::chrono::seconds limit)
    {
        for (const auto end = clock::now() + limit; more(); run_for(5ms)) {
            if (clock::now() > end)
                throw std::runtime_error("the waiters make no progress");
        }
    }
    void run_for(std::chrono::milliseconds time)
    {
        io_.restart();
        io_.run_for(time);
    }

    asio::io_context io_{1};
    std::vector<std::shared_ptr<colock::adapter>> adapters_;
    std::optional<colock::locker> holder_;
    std::vector<colock::locker> lockers_;
    std::optional<colock::lock> held_;
    std::size_t waiters_ = 0;
    std::size_t served_ = 0;
};

void measure_waiting(const workload& at, const options& settings, report& results)
{
    constexpr std::size_t lockers = 4000;
    // Each waiter checks its position every two seconds.
    constexpr auto time = 20s;
    const auto port = static_cast<std::uint16_t>(std::stoi(at.port));
    queue_for_one_key queue(settings.backend, 4);
    queue.start_waiters(lockers, true, {.ttl = 0ms}, 0ms);
    queue.idle(3s);
    const auto before = bytes_received_from(port);
    const auto start = clock::now();
    queue.idle(time);
    const auto bytes = static_cast<double>(bytes_received_from(port) - before);
    const auto name = std::to_string(lockers) + " lockers of 4 sessions, ";
    results.add({name + "from the server while they wait", bytes / 1e3 / seconds_since(start), "kB/s", 1000.0});
    const auto released = clock::now();
    queue.release();
    static_cast<void>(queue.serve());
    results.add({name + "all are granted, one after the other", seconds_since(released), "s"});
}

void measure_readers(const options& settings, report& results, std::size_t readers, double max_seconds)
{
    queue_for_one_key queue(settings.backend, 1);
    const auto start = clock::now();
    queue.start_waiters(readers, false, {.ttl = 0ms, .mode = colock::lock_mode::shared}, 0ms);
    const auto name = std::to_string(readers) + " readers of one locker, ";
    results.add({name + "all wait for the writer", seconds_since(start), "s"});
    queue.idle(5s);
    const auto released = clock::now();
    queue.release();
    const auto longest = queue.serve();
    results.add({name + "from its release until all were granted", seconds_since(released), "s", max_seconds});
    bench::add(results, name + "the longest handler meanwhile", longest, 10.0);
}

void measure_semaphore(const options& settings, report& results, std::size_t waiters, double max_seconds)
{
    constexpr std::size_t places = 2;
    queue_for_one_key queue(settings.backend, 1);
    queue.start_waiters(waiters, false, {.ttl = 0ms, .mode = colock::lock_mode::shared, .max_holders = places}, 1ms);
    const auto released = clock::now();
    queue.release();
    static_cast<void>(queue.serve());
    results.add({std::to_string(waiters) + " waiters for " + std::to_string(places) +
                     " places of a semaphore, all were served, each for 1 ms",
        seconds_since(released), "s", max_seconds});
}

} // namespace

void measure_zookeeper_many_waiters(const workload& at, const options& settings, report& results)
{
    results.begin("ZooKeeper: many waiters for one key");
    measure_waiting(at, settings, results);
    measure_readers(settings, results, 8000, 5.0);
    measure_readers(settings, results, 25'000, 15.0);
    measure_semaphore(settings, results, 800, 10.0);
    measure_semaphore(settings, results, 4000, 60.0);
}

} // namespace bench
