// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "server.hpp"
#include "support/grant_checker.hpp"
#include "support/notes.hpp"
#include "support/run.hpp"

#include <colock/locker.hpp>
#include <colock/zookeeper/adapter.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace colock::testing {

using namespace std::chrono_literals;

[[nodiscard]] inline zookeeper::options with_credentials(
    zookeeper::options options, std::string user, std::string password)
{
    options.user = std::move(user);
    options.password = std::move(password);
    return options;
}

/// Lockers that behave as if they were in different processes: each has a session of its own.
class locker_fixture
{
public:
    using where = std::source_location;

    /// \param url URL of a server or an ensemble, without a chroot
    /// \param up_to_date_server returns the port of a server that has applied all writes
    locker_fixture(std::string url, std::function<std::uint16_t()> up_to_date_server, std::string chroot = "/locks")
        : chroot_(std::move(chroot)), url_(std::move(url)), up_to_date_server_(std::move(up_to_date_server))
    {
    }

    [[nodiscard]] zookeeper::options options(
        std::chrono::milliseconds session_timeout = 10s, std::string url = {}) const
    {
        return {.url = (url.empty() ? url_ : url) + chroot_,
            .session_timeout = session_timeout,
            .server_tick = 500ms,
            .idle_timeout = 10min};
    }
    [[nodiscard]] std::shared_ptr<adapter> make_adapter(const zookeeper::options& options)
    {
        return zookeeper::make_adapter(io.get_executor(), options);
    }
    [[nodiscard]] locker& add(std::shared_ptr<adapter> backend)
    {
        all_.push_back(std::make_unique<locker>(std::move(backend), locker_options{.observer = events}));
        return *all_.back();
    }
    [[nodiscard]] locker& add(const zookeeper::options& options) { return add(make_adapter(options)); }
    [[nodiscard]] locker& add(std::chrono::milliseconds session_timeout = 10s, std::string url = {})
    {
        return add(options(session_timeout, std::move(url)));
    }

    template <class T>
    T run(asio::awaitable<T> coroutine, where at = where::current(), run_limits limits = {})
    {
        return run_coro(io, std::move(coroutine), at, limits);
    }
    /// Runs the context until `reached` returns true. Also runs handlers that no coroutine waits for.
    void until(const std::function<bool()>& reached, where at = where::current())
    {
        for (const auto limit = std::chrono::steady_clock::now() + 60s; !reached();) {
            if (std::chrono::steady_clock::now() > limit)
                throw stuck(std::string(at.file_name()) + ':' + std::to_string(at.line()) + ": not reached in time");
            io.restart();
            // Other processes may be working for the test.
            if (io.run_for(5ms) == 0 && io.stopped())
                std::this_thread::sleep_for(1ms);
        }
    }
    /// The nodes of holders and waiters, including those of sessions whose process has died.
    [[nodiscard]] std::vector<std::string> nodes() const
    {
        auto all = ephemeral_nodes(up_to_date_server_());
        std::erase_if(all, [this](const auto& each) { return !each.starts_with(chroot_ + '/'); });
        return all;
    }
    [[nodiscard]] const std::string& chroot() const noexcept { return chroot_; }
    /// Starts an acquire, and returns when its node is in the lock queue.
    running<lock> queue(locker& by)
    {
        const auto before = nodes().size();
        auto waiting = start(io, by.acquire("k"));
        until([&] { return nodes().size() == before + 1; });
        return waiting;
    }
    /// Like `queue`, but returns when the waiter watches its predecessor. The waiter does not poll in between.
    running<lock> queue_and_watch(locker& by)
    {
        const auto before = watches_at(up_to_date_server_());
        auto waiting = start(io, by.acquire("k", {.retry = retry_policy::fixed(1h)}));
        until([&] { return watches_at(up_to_date_server_()) == before + 1; });
        return waiting;
    }

    /// Acquires the lock, reports the grant to `seen`, and releases the lock.
    static asio::awaitable<void> acquire_and_release(locker by, grant_checker& seen)
    {
        auto held = co_await by.acquire("k");
        seen.on_grant(held);
        co_await held.release();
        seen.on_release(held);
    }
    /// Repeats `acquire_and_release` until `enough` becomes true.
    static asio::awaitable<void> acquire_and_release_until(locker by, grant_checker& seen, const bool& enough)
    {
        while (!enough)
            co_await acquire_and_release(by, seen);
    }

    /// Checks that the lockers have left no node behind, before and after their sessions are closed. No locker may hold
    /// or wait any more.
    void check_end(where at = where::current())
    {
        // The nodes are checked before the shutdown, because an abandoned node would end with its session.
        until([this] { return nodes().empty(); }, at);
        for (const auto& each : all_)
            BOOST_TEST(run(each->shutdown(10s), at).clean(), "line " << at.line());
        BOOST_TEST(nodes().empty(), "line " << at.line());
        io.restart();
        io.run_for(10s);
        BOOST_TEST(io.stopped(), "line " << at.line() << ": work is left in the context");
    }

    asio::io_context io;
    /// Events of all lockers.
    std::shared_ptr<notes> events = std::make_shared<notes>();

private:
    /// Root folder of this fixture, so that nodes left by a failed test do not affect other tests.
    const std::string chroot_;
    const std::string url_;
    const std::function<std::uint16_t()> up_to_date_server_;
    std::vector<std::unique_ptr<locker>> all_;
};

} // namespace colock::testing
