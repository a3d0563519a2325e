// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// A process that is stopped for longer than its session, and children of a fork.
#include "one_server.hpp"
#include "support/in_shared_memory.hpp"
#include "support/process.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <sys/wait.h>

namespace colock::testing {

BOOST_FIXTURE_TEST_SUITE(zookeeper_processes, one_server)

namespace {

struct stopped_process_work
{
    std::atomic<std::uint64_t> fence{0};
    std::atomic<int> line_count{0};
    std::atomic<bool> taken{false};
    /// Number of lines that were written when another process had the lock.
    std::atomic<int> late_count{0};
};

asio::awaitable<void> work_while_held(const lock& held, stopped_process_work& env)
{
    asio::steady_timer pause(co_await asio::this_coro::executor);
    while (held.held()) {
        if (env.taken)
            ++env.late_count;
        ++env.line_count;
        pause.expires_after(1ms);
        co_await pause.async_wait(asio::use_awaitable);
    }
}

} // namespace

BOOST_AUTO_TEST_CASE(process_stopped_beyond_its_session_timeout_does_no_work_after_the_loss)
{
    const in_shared_memory<stopped_process_work> shared;
    const auto stopped_process = in_child([&] {
        locker_fixture own(zookeeper_url(server->port()), [&] { return server->port(); });
        auto held = own.run(own.add(2s).acquire("k"));
        shared->fence = held.fence();
        auto loss_event = start(own.io, held.lost());
        own.run(work_while_held(held, *shared.operator->()));
        if (loss_event.get(own.io) != lost_reason::session)
            throw std::runtime_error("the loss was not reported");
    });
    until([&] { return shared->line_count > 10; });
    ::kill(stopped_process, SIGSTOP);
    auto next = run(add().acquire("k"));
    BOOST_TEST(next.fence() > shared->fence.load());
    shared->taken = true;
    ::kill(stopped_process, SIGCONT);
    BOOST_TEST(wait_for(stopped_process) == 0);
    BOOST_TEST(shared->late_count.load() == 0);
    run(next.release(on_failure::raise));
    check_end();
}

BOOST_AUTO_TEST_CASE(child_of_a_fork_has_its_own_session_and_no_locks)
{
    auto& env = add();
    auto held = run(env.acquire("parent"));
    auto waiting = queue(add());
    io.notify_fork(asio::execution_context::fork_prepare);
    const auto child = in_child([&] {
        io.notify_fork(asio::execution_context::fork_child);
        if (held.held())
            throw std::runtime_error("the child holds a lock of its parent");
        auto own = run(env.acquire("child"));
        run(held.release());
        run(own.release(on_failure::raise));
        // Everything else that the child has sent is carried out before this is answered.
        if (!run(env.is_locked("parent")))
            throw std::runtime_error("the child has released a lock of its parent");
        run(env.shutdown(5s));
    });
    io.notify_fork(asio::execution_context::fork_parent);
    BOOST_TEST(wait_for(child) == 0);
    BOOST_TEST(held.held());
    run(held.release(on_failure::raise));
    run(waiting.get(io).release(on_failure::raise));
    BOOST_TEST(env.stats().reconnects == 0u);
    check_end();
}

BOOST_AUTO_TEST_CASE(child_of_a_fork_acquires_independently_of_the_parents_state)
{
    auto& env = add();
    run(run(env.acquire("warm")).release(on_failure::raise));
    for (int steps = 0; steps < 8; ++steps) {
        auto acquiring = start(io, env.acquire("parent"));
        for (int step = 0; step < steps; ++step)
            io.poll_one();
        io.notify_fork(asio::execution_context::fork_prepare);
        const auto child = in_child([&] {
            io.notify_fork(asio::execution_context::fork_child);
            run(run(env.acquire("child")).release(on_failure::raise));
            run(env.shutdown(5s));
        });
        io.notify_fork(asio::execution_context::fork_parent);
        BOOST_TEST(wait_for(child) == 0, "after " << steps << " steps");
        run(acquiring.get(io).release(on_failure::raise));
    }
    check_end();
}

namespace {

/// Counts the attempts to connect that failed.
struct failure_counter final : observer
{
    void unreachable(std::string_view, const error_code&, std::string_view) noexcept override { ++failures; }
    void suspended(std::string_view, const error_code&) noexcept override { ++failures; }

    int failures = 0;
};

} // namespace

BOOST_AUTO_TEST_CASE(child_of_a_fork_connects_at_the_first_attempt_while_its_parent_works)
{
    for (int round = 0; round < 5; ++round) {
        const auto backend = make_adapter(options());
        const locker env(backend);
        bool stops = false;
        const auto work = [&](std::string key) -> asio::awaitable<void> {
            while (!stops) {
                auto held = co_await env.acquire(key);
                co_await held.release(on_failure::raise);
            }
        };
        std::vector<running<void>> working;
        for (int i = 0; i < 16; ++i)
            working.push_back(start(io, work("parent " + std::to_string(i))));
        const auto begun = lease_clock::now();
        until([&] { return lease_clock::now() - begun > 50ms; });
        io.notify_fork(asio::execution_context::fork_prepare);
        const auto child = in_child([&] {
            stops = true;
            io.notify_fork(asio::execution_context::fork_child);
            const auto counter = std::make_shared<failure_counter>();
            backend->attach(counter);
            if (!run(env.try_acquire("child")))
                throw std::runtime_error("the child was not granted a lock that is free");
            if (counter->failures != 0)
                throw std::runtime_error("a connection of the child failed");
            run(env.shutdown(5s));
        });
        io.notify_fork(asio::execution_context::fork_parent);
        int status = 0;
        until([&] { return ::waitpid(child, &status, WNOHANG) == child; });
        BOOST_TEST(status == 0);
        stops = true;
        for (auto& each : working)
            each.get(io);
        run(env.shutdown(5s));
    }
    check_end();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
