// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/locker.hpp>
#include <colock/redis/adapter.hpp>
#include <colock/token.hpp>

#include "server.hpp"
#include "support/exit_of_child.hpp"
#include "support/in_shared_memory.hpp"
#include "support/process.hpp"
#include "support/run.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <csignal>
#include <exception>
#include <functional>
#include <future>
#include <new>
#include <random>
#include <stdexcept>

#include <unistd.h>

namespace colock::testing {
namespace {

using namespace std::chrono_literals;

struct counter
{
    /// Protected by the lock only.
    std::atomic<long> value{0};
    /// Process that is between reading and writing, or 0.
    std::atomic<pid_t> inside{0};
    std::atomic<long> updates{0};
    std::atomic<long> collisions{0};
    std::atomic<bool> enough{false};
    shared_event updated;
};

asio::awaitable<void> update(counter& shared)
{
    const pid_t before = shared.inside.exchange(::getpid());
    // A process that was killed between reading and writing leaves its id, which is ignored.
    if (before != 0 && ::kill(before, 0) == 0)
        ++shared.collisions;
    const long read = shared.value;
    asio::steady_timer pause(co_await asio::this_coro::executor, 200us);
    co_await pause.async_wait(asio::use_awaitable);
    if (shared.value != read)
        ++shared.collisions;
    shared.value = read + 1;
    ++shared.updates;
    shared.inside = 0;
    shared.updated.notify();
}

asio::awaitable<void> keep_updating(locker env, counter& shared)
{
    while (!shared.enough) {
        co_await env.with_lock("counter", acquire_options{.ttl = 6s}, [&] { return update(shared); });
    }
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_processes)

BOOST_AUTO_TEST_CASE(no_update_is_lost_when_holders_are_killed)
{
    redis_server server;
    const in_shared_memory<counter> shared;
    const auto worker = [&] {
        asio::io_context io;
        locker env(redis::make_adapter(io.get_executor(), {.url = server.url()}));
        run_coro(io, keep_updating(env, *shared.operator->()), std::source_location::current(),
            {.handlers = 100'000'000, .time = 100s});
    };
    std::array<pid_t, 3> workers{};
    for (auto& each : workers)
        each = in_child(worker);

    std::minstd_rand random(7);
    long kills = 0;
    for (int i = 0; i < 6; ++i) {
        const long seen = shared->value;
        // The workers make progress after each kill: the lock of a killed holder expires after its ttl.
        BOOST_TEST(shared->updated.wait_until([&] { return shared->value >= seen + 20; }));
        auto& victim = workers[random() % workers.size()];
        ::kill(victim, SIGKILL);
        wait_for(victim);
        ++kills;
        victim = in_child(worker);
    }
    shared->enough = true;
    for (const auto each : workers)
        BOOST_TEST(wait_for(each) == 0);

    BOOST_TEST(shared->collisions == 0);
    // A killed process may have written the value without counting the update.
    BOOST_TEST(shared->value >= shared->updates);
    BOOST_TEST(shared->value <= shared->updates + kills);
    BOOST_TEST(server({"EXISTS", "{colock}:counter"}) == "0");
}

namespace {

/// A resource that a lock protects, and that refuses writes with a lower fence than an earlier one.
struct resource
{
    std::atomic<std::uint64_t> highest{0};
    std::atomic<bool> held{false};
    std::atomic<bool> may_go_on{false};
    shared_event of_sleeper;
    shared_event for_sleeper;
    std::atomic<int> refused{0};

    bool write(std::uint64_t fence)
    {
        for (auto seen = highest.load(); fence >= seen;) {
            if (highest.compare_exchange_weak(seen, fence))
                return true;
        }
        ++refused;
        return false;
    }
};

} // namespace

BOOST_AUTO_TEST_CASE(process_stopped_beyond_its_lease_cannot_write)
{
    redis_server server;
    const in_shared_memory<resource> shared;
    const auto sleeper = in_child([&] {
        asio::io_context io;
        locker env(redis::make_adapter(io.get_executor(), {.url = server.url()}));
        // The first use takes longer than later ones, and must not use up the ttl.
        static_cast<void>(run_coro(io, env.is_locked("r")));
        const auto held = run_coro(io, env.acquire("r", {.ttl = 300ms}));
        if (!shared->write(held.fence()))
            throw std::runtime_error("the first write was refused");
        shared->held = true;
        shared->of_sleeper.notify();
        // The process is stopped here and does not notice the time that passes.
        if (!shared->for_sleeper.wait_until([&] { return shared->may_go_on.load(); }))
            throw std::runtime_error("it was not woken");
        if (shared->write(held.fence()))
            throw std::runtime_error("a late write was accepted");
        if (held.held())
            throw std::runtime_error("the lock is still believed in");
    });
    BOOST_TEST(shared->of_sleeper.wait_until([&] { return shared->held.load(); }));
    ::kill(sleeper, SIGSTOP);

    asio::io_context io;
    locker env(redis::make_adapter(io.get_executor(), {.url = server.url()}));
    auto next = run_coro(io, env.acquire("r", {.ttl = 10s}));
    BOOST_TEST(shared->write(next.fence()));
    shared->may_go_on = true;
    shared->for_sleeper.notify();
    ::kill(sleeper, SIGCONT);
    BOOST_TEST(wait_for(sleeper) == 0);
    BOOST_TEST(shared->refused == 1);
    run_coro(io, next.release());
}

BOOST_AUTO_TEST_CASE(process_and_its_child_are_not_both_granted_one_lock)
{
    redis_server server;
    const auto try_acquire = [&](bool& was_granted) {
        asio::io_context io;
        const locker own(redis::make_adapter(io.get_executor(), {.url = server.url()}));
        auto got = run_coro(io, own.try_acquire("k", {.ttl = 1h}));
        was_granted = got.has_value();
        // The lock outlives its process.
        if (got)
            static_cast<void>(run_coro(io, got->detach()));
        run_coro(io, own.shutdown(5s));
    };
    // Reads random bytes for further tokens, which must not be used in both processes.
    static_cast<void>(token::generate());
    const auto child = in_child([&] {
        bool was_granted = false;
        try_acquire(was_granted);
        if (!was_granted)
            throw std::runtime_error("the child was refused a free lock");
    });
    BOOST_TEST(wait_for(child) == 0);
    bool was_granted = true;
    try_acquire(was_granted);
    BOOST_TEST(!was_granted);
}

BOOST_AUTO_TEST_CASE(exit_of_a_child_does_the_parent_no_harm)
{
    redis_server server;
    check_exit_of_child(
        [&](const asio::any_io_executor& executor) { return redis::make_adapter(executor, {.url = server.url()}); },
        2s);
}

BOOST_AUTO_TEST_CASE(exit_of_a_child_does_a_quorum_of_the_parent_no_harm)
{
    redis_server servers[3];
    check_exit_of_child(
        [&](const asio::any_io_executor& executor) {
            return redis::make_quorum(
                executor, {servers[0].url(), servers[1].url(), servers[2].url()}, {.operation_timeout = 5s});
        },
        2s);
}

BOOST_AUTO_TEST_CASE(one_adapter_serves_many_threads)
{
    redis_server server;
    long value = 0;
    {
        asio::thread_pool threads(2);
        locker env(redis::make_adapter(threads.get_executor(), {.url = server.url(), .idle_timeout = 0ms}));
        std::vector<std::future<void>> done;
        for (int i = 0; i < 8; ++i) {
            done.push_back(asio::co_spawn(
                asio::make_strand(threads),
                [&]() -> asio::awaitable<void> {
                    for (int round = 0; round < 25; ++round) {
                        auto held = co_await env.acquire("value");
                        ++value;
                        co_await held.release();
                    }
                },
                asio::use_future));
        }
        for (auto& each : done)
            each.get();
        // Attempts that are cancelled at different moments of the acquisition.
        std::vector<std::future<void>> hopeless;
        for (int i = 0; i < 50; ++i) {
            hopeless.push_back(asio::co_spawn(
                asio::make_strand(threads),
                [&, i]() -> asio::awaitable<void> {
                    const auto [code, held] = co_await env.async_acquire("busy" + std::to_string(i % 3),
                        asio::cancel_after(std::chrono::microseconds(50 * i), asio::as_tuple(asio::use_awaitable)));
                    if (code && code != asio::error::operation_aborted)
                        throw boost::system::system_error(code);
                },
                asio::use_future));
        }
        for (auto& each : hopeless)
            each.get();
        threads.join();
    }
    BOOST_TEST(value == 200);
    BOOST_TEST(server({"KEYS", "{colock}:*"}).empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
