// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include <colock/locker.hpp>
#include <colock/redis/adapter.hpp>

#include "server.hpp"
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

/// Throws if `what` is false, because a child process cannot use the macros of the test framework.
void expect(bool what, const char* otherwise)
{
    if (!what)
        throw std::runtime_error(otherwise);
}

bool ends_as_forked(asio::io_context& io, running<lock>& acquire)
{
    try {
        static_cast<void>(acquire.get(io));
    } catch (const create_error& failed) {
        return failed.code() == errc::forked;
    }
    return false;
}

BOOST_AUTO_TEST_CASE(a_forked_child_has_connections_of_its_own_and_nothing_else)
{
    redis_server server;
    asio::io_context io;
    locker env(redis::make_adapter(io.get_executor(), {.url = server.url()}));
    auto held = run_coro(io, env.acquire("parent"));
    auto waiting = start(io, env.acquire("parent"));
    run_until(io, [&] { return server({"PUBSUB", "NUMSUB", "{colock}:parent"}) == "{colock}:parent\n1\n"; });
    io.notify_fork(asio::execution_context::fork_prepare);
    const auto child = in_child([&] {
        io.notify_fork(asio::execution_context::fork_child);
        expect(!held.held(), "the child holds what its parent holds");
        auto own = run_coro(io, env.acquire("child"));
        expect(ends_as_forked(io, waiting), "the child waits for what its parent waits for");
        run_coro(io, held.release());
        run_coro(io, own.release(on_failure::raise));
        // This request is answered after all earlier requests of the child.
        expect(run_coro(io, env.is_locked("parent")), "the child has given back what is its parent's");
        expect(env.stats().reconnects == 0, "the child has used its parent's connection");
    });
    io.notify_fork(asio::execution_context::fork_parent);
    BOOST_TEST(wait_for(child) == 0);
    run_coro(io, held.extend(20s));
    run_coro(io, held.release(on_failure::raise));
    run_coro(io, waiting.get(io).release(on_failure::raise));
    BOOST_TEST(env.stats().reconnects == 0u);
    BOOST_TEST(run_coro(io, env.shutdown(5s)).clean());
}

BOOST_AUTO_TEST_CASE(a_lock_is_granted_to_the_parent_alone_if_it_forks_while_it_waits)
{
    redis_server server;
    server({"SET", "{colock}:k", stored_holder('f')});
    asio::io_context io;
    locker env(redis::make_adapter(io.get_executor(), {.url = server.url(), .poll_interval = 10ms}));
    auto waiting = start(io, env.acquire("k"));
    run_until(io, [&] { return server({"PUBSUB", "NUMSUB", "{colock}:k"}) == "{colock}:k\n1\n"; });
    io.notify_fork(asio::execution_context::fork_prepare);
    const auto child = in_child([&] {
        io.notify_fork(asio::execution_context::fork_child);
        server({"DEL", "{colock}:k"});
        server({"PUBLISH", "{colock}:k", ""});
        expect(ends_as_forked(io, waiting), "granted in the child");
    });
    io.notify_fork(asio::execution_context::fork_parent);
    auto held = waiting.get(io);
    BOOST_TEST(wait_for(child) == 0);
    BOOST_TEST(run_coro(io, held.is_locked()));
    run_coro(io, held.release(on_failure::raise));
}

BOOST_AUTO_TEST_CASE(forked_child_releases_nothing_of_its_parents_quorum)
{
    redis_server servers[3];
    asio::io_context io;
    locker env(redis::make_quorum(
        io.get_executor(), {servers[0].url(), servers[1].url(), servers[2].url()}, {.operation_timeout = 5s}));
    // All connections are open. Then two nodes stop answering.
    run_coro(io, run_coro(io, env.acquire("first")).release(on_failure::raise));
    servers[0].pause();
    servers[1].pause();
    auto wanted = start(io, env.acquire("k"));
    run_until(io, [&] { return servers[2]({"EXISTS", "{colock}:k"}) == "1"; });
    io.notify_fork(asio::execution_context::fork_prepare);
    const auto child = in_child([&] {
        io.notify_fork(asio::execution_context::fork_child);
        expect(ends_as_forked(io, wanted), "granted in the child");
        servers[0].resume();
        servers[1].resume();
        run_coro(io, run_coro(io, env.acquire("child")).release(on_failure::raise));
        expect(servers[2]({"EXISTS", "{colock}:k"}) == "1", "the child has taken back what is its parent's");
    });
    io.notify_fork(asio::execution_context::fork_parent);
    auto held = wanted.get(io);
    BOOST_TEST(wait_for(child) == 0);
    BOOST_TEST(run_coro(io, held.is_locked()));
    run_coro(io, held.release(on_failure::raise));
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
