// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
// A process that is stopped for longer than its session, and child processes.
#include "one_server.hpp"
#include "support/exit_of_child.hpp"
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

BOOST_AUTO_TEST_CASE(exit_of_a_child_does_the_parent_no_harm)
{
    auto how = options();
    how.session_timeout = 2s;
    check_exit_of_child([&](const asio::any_io_executor& executor) { return zookeeper::make_adapter(executor, how); },
        how.session_timeout);
    check_end();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
