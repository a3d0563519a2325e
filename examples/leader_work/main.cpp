// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
//
// Leader election: start this program several times on one backend. One process leads and does the work; the others
// wait. If the leader is told to stop, the next process leads at once. If the leader is killed, the next one leads when
// the lock has expired in the backend. If the leader loses its lock in another way, its work is cancelled before the
// next one leads.

#include "../../tools/arguments.hpp"
#include "../../tools/built_backends.hpp"

#include <colock/election.hpp>
#include <colock/locker.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <chrono>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

//[ election
// Runs until the locker is shut down, or the coroutine is cancelled. The work is cancelled while it waits for its
// timer, a margin before another process can lead.
asio::awaitable<void> stand_for_election(
    colock::locker locker, std::string office, std::chrono::milliseconds step_interval)
{
    const colock::election election(locker, office);
    co_await election.lead([step_interval](colock::leadership& held) -> asio::awaitable<void> {
        std::cout << "leads, term " << held.term() << std::endl;
        asio::steady_timer pause(co_await asio::this_coro::executor);
        for (int step = 1;; ++step) {
            std::cout << "step " << step << std::endl;
            pause.expires_after(step_interval);
            co_await pause.async_wait(asio::deferred);
        }
    });
}
//]

} // namespace

int main(int count, char** words)
try {
    std::string backend = "memory:";
    std::string office = "leader";
    unsigned ttl = 3000;
    unsigned step_interval = 500;
    if (const auto early = tools::arguments("leader_work: several processes elect a leader, which does the work")
            .value("backend", backend, "URL", "URL of the lock service; default: memory:")
            .value("office", office, "KEY", "key of the lock that makes a process the leader; default: leader")
            .value("ttl-ms", ttl, "N", "longest wait for a dead leader, in ms; default: 3000", 500, 3'600'000)
            .value("pace-ms", step_interval, "N", "interval of the steps, in ms; default: 500", 1, 3'600'000)
            .parse(count, words))
        return *early;

    asio::io_context io{1};
    const colock::locker locker(colock::make_adapter(io.get_executor(), backend, tools::built_backends()),
        {.ttl = std::chrono::milliseconds(ttl)});
    const std::chrono::milliseconds interval(step_interval);
    asio::co_spawn(io, stand_for_election(locker, office, interval), [](std::exception_ptr failure) {
        if (failure)
            std::rethrow_exception(failure);
    });
    asio::signal_set signals(io, SIGINT, SIGTERM);
    signals.async_wait([&](auto...) {
        // Ends the election, and the session of the locker, so that other processes do not have to wait for its expiry.
        asio::co_spawn(io, locker.shutdown(), [](std::exception_ptr, const colock::shutdown_report& report) {
            std::cout << (report.clean() ? "gone\n" : "gone, in doubt\n") << std::flush;
        });
    });
    io.run();
} catch (const std::exception& failure) {
    std::cerr << "error: " << failure.what() << '\n';
    return 2;
}
