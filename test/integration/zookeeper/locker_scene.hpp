// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include "server.hpp"
#include "support/notes.hpp"
#include "support/run.hpp"
#include "support/witness.hpp"

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

[[nodiscard]] inline zookeeper::options of_user(zookeeper::options others, std::string user, std::string password)
{
    others.user = std::move(user);
    others.password = std::move(password);
    return others;
}

/// Lockers that are to each other what other processes are: each has a session of its own.
class locker_scene
{
public:
    using where = std::source_location;

    /// \param url of a server or an ensemble, without a chroot
    /// \param truth the port of one that knows all that was written
    locker_scene(std::string url, std::function<std::uint16_t()> truth, std::string chroot = "/locks")
        : chroot_(std::move(chroot)), url_(std::move(url)), truth_(std::move(truth))
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
        all_.push_back(std::make_unique<locker>(std::move(backend), locker_options{.observer = told}));
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
    /// Handlers that nobody waits for run, too.
    void until(const std::function<bool()>& reached, where at = where::current())
    {
        for (const auto limit = std::chrono::steady_clock::now() + 60s; !reached();) {
            if (std::chrono::steady_clock::now() > limit)
                throw stuck(std::string(at.file_name()) + ':' + std::to_string(at.line()) + ": not reached in time");
            io.restart();
            // Others may be at work, in their own processes.
            if (io.run_for(5ms) == 0 && io.stopped())
                std::this_thread::sleep_for(1ms);
        }
    }
    /// What stands in line, whoever has died without leaving it included.
    [[nodiscard]] std::vector<std::string> nodes() const
    {
        auto all = ephemeral_nodes(truth_());
        std::erase_if(all, [this](const auto& each) { return !each.starts_with(chroot_ + '/'); });
        return all;
    }
    [[nodiscard]] const std::string& chroot() const noexcept { return chroot_; }
    /// Starts to wait, and goes on when that stands in line.
    running<lock> queue(locker& by)
    {
        const auto before = nodes().size();
        auto waiting = start(io, by.acquire("k"));
        until([&] { return nodes().size() == before + 1; });
        return waiting;
    }
    /// The same, and it watches: from now on it looks only when it is told to.
    running<lock> queue_patiently(locker& by)
    {
        const auto before = watches_at(truth_());
        auto waiting = start(io, by.acquire("k", {.retry = retry_policy::fixed(1h)}));
        until([&] { return watches_at(truth_()) == before + 1; });
        return waiting;
    }

    /// Acquires, is seen, and releases.
    static asio::awaitable<void> pass(locker by, witness& seen)
    {
        auto held = co_await by.acquire("k");
        seen.granted(held);
        co_await held.release();
        seen.left(held);
    }
    /// Over and over.
    static asio::awaitable<void> pass_until(locker by, witness& seen, const bool& enough)
    {
        while (!enough)
            co_await pass(by, seen);
    }

    /// Nobody holds anything or waits: the tree holds nothing, neither while their sessions live nor when all have
    /// left.
    void check_end(where at = where::current())
    {
        // With its session an orphan would end, too.
        until([this] { return nodes().empty(); }, at);
        for (const auto& each : all_)
            BOOST_TEST(run(each->shutdown(10s), at).clean(), "line " << at.line());
        BOOST_TEST(nodes().empty(), "line " << at.line());
        io.restart();
        io.run_for(10s);
        BOOST_TEST(io.stopped(), "line " << at.line() << ": something keeps the context");
    }

    asio::io_context io;
    /// What all of them tell.
    std::shared_ptr<notes> told = std::make_shared<notes>();

private:
    /// Of its own: what a test that failed has left is in nobody's way.
    const std::string chroot_;
    const std::string url_;
    const std::function<std::uint16_t()> truth_;
    std::vector<std::unique_ptr<locker>> all_;
};

} // namespace colock::testing
