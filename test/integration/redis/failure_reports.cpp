// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/no_free_descriptors.hpp"
#include "support/peer.hpp"
#include "support/print.hpp"
#include "support/virtual_fixture.hpp"

#include <colock/locker.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/test/unit_test.hpp>

#include <cerrno>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace colock::testing {
namespace {

using clock = std::chrono::steady_clock;

const error_code refused = boost::asio::error::connection_refused;

/// Records the events that an operator would see.
struct event_log final : observer
{
    void unreachable(
        std::string_view, const error_code& why, std::string_view address, std::string_view detail) noexcept override
    {
        events.push_back("unreachable");
        causes.push_back(why);
        addresses.emplace_back(address);
        details.emplace_back(detail);
    }
    void warning(std::string_view, std::string_view message) noexcept override { warnings.emplace_back(message); }
    void waiting(std::string_view) noexcept override { events.emplace_back("waiting"); }

    [[nodiscard]] std::size_t times(std::string_view what) const
    {
        return static_cast<std::size_t>(std::ranges::count(events, what));
    }

    std::vector<std::string> events;
    std::vector<error_code> causes;
    std::vector<std::string> addresses;
    std::vector<std::string> details;
    std::vector<std::string> warnings;
};

/// A locker for the given URL, with an observer.
struct observed_locker
{
    explicit observed_locker(std::string url, std::chrono::milliseconds timeout = 5s)
    {
        redis::options settings;
        settings.url = std::move(url);
        settings.operation_timeout = timeout;
        settings.health_interval = 200ms;
        locks.emplace(redis::make_adapter(io.get_executor(), std::move(settings)),
            locker_options{.operation_timeout = timeout, .observer = log});
    }
    ~observed_locker() { run_coro(io, locks->shutdown(1s)); }

    template <class T>
    error failure_of(asio::awaitable<T> coroutine)
    {
        try {
            static_cast<void>(run_coro(io, std::move(coroutine)));
        } catch (const error& failed) {
            return failed;
        }
        BOOST_ERROR("the operation did not fail");
        return {{}, {}};
    }

    asio::io_context io;
    std::shared_ptr<event_log> log = std::make_shared<event_log>();
    std::optional<locker> locks;
};

std::string unused_url()
{
    return "redis://127.0.0.1:" + std::to_string(free_port());
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_failure_reports)

BOOST_AUTO_TEST_CASE(absent_server_is_reported_with_its_address_and_cause)
{
    const auto url = unused_url();
    observed_locker env(url, 2s);
    const auto failed = env.failure_of(env.locks->try_acquire("k"));
    BOOST_TEST((failed.code() == errc::unavailable), failed.what());
    BOOST_TEST((failed.cause() == refused), failed.what());
    BOOST_TEST_REQUIRE(env.log->times("unreachable") == 1u);
    BOOST_TEST((env.log->causes.front() == refused));
    BOOST_TEST("redis://" + env.log->addresses.front() == url);
}

BOOST_AUTO_TEST_CASE(address_is_named_before_the_first_attempt_has_ended)
{
    asio::io_context unused;
    // The kernel accepts the connection, and nobody answers.
    const asio::ip::tcp::acceptor silent(unused, {asio::ip::make_address("127.0.0.1"), 0});
    const auto address = "127.0.0.1:" + std::to_string(silent.local_endpoint().port());
    for (const std::string scheme : {"redis://", "rediss://"}) {
        observed_locker env(scheme + address);
        const auto failed = env.failure_of(env.locks->acquire("k", {.retry = within(100ms)}));
        BOOST_TEST((failed.code() == errc::unavailable), failed.what());
        BOOST_TEST(failed.detail() == "no connection to " + address + " has been established yet");
    }
}

BOOST_AUTO_TEST_CASE(every_unreachable_node_of_a_quorum_is_reported)
{
    std::vector<std::string> urls;
    while (urls.size() < 3) {
        if (auto one = unused_url(); std::ranges::find(urls, one) == urls.end())
            urls.push_back(std::move(one));
    }
    asio::io_context io;
    const auto log = std::make_shared<event_log>();
    const locker locks(redis::make_quorum(io.get_executor(), urls), {.observer = log});
    auto waiting = start(io, locks.acquire("k"));
    run_until(io, [&] { return log->times("unreachable") == 3; });
    BOOST_TEST(log->times("waiting") == 0u);
    for (const auto limit : {100ms, 2000ms}) {
        try {
            static_cast<void>(run_coro(io, locks.acquire("other", {.retry = within(limit)})));
            BOOST_ERROR("acquire did not fail");
        } catch (const create_error& failed) {
            BOOST_TEST((failed.code() == errc::unavailable), failed.what());
            BOOST_TEST((failed.cause() == refused), failed.what());
        }
    }
    run_coro(io, locks.shutdown(1s));
    BOOST_CHECK_THROW(static_cast<void>(waiting.get(io)), create_error);
}

/// Checks that an acquire and the observer report the error of the server.
void check_refusal(redis_server& server, std::string_view cause, std::string_view detail)
{
    observed_locker env(server.url());
    auto waiting = start(env.io, env.locks->acquire("k"));
    run_until(env.io, [&] { return env.log->times("unreachable") == 1; });
    auto failed = env.failure_of(env.locks->acquire("other", {.retry = within(200ms)}));
    BOOST_TEST((failed.code() == errc::unavailable), failed.what());
    BOOST_TEST(!waiting.done());
    BOOST_TEST(failed.cause().message().find(cause) != std::string::npos, failed.what());
    BOOST_TEST(failed.detail().find(detail) != std::string::npos, failed.what());
    BOOST_TEST_REQUIRE(env.log->causes.size() == 1u);
    BOOST_TEST((env.log->causes.front() == failed.cause()));
    BOOST_TEST(env.log->details.front() == failed.detail());
    BOOST_TEST("redis://" + env.log->addresses.front() == server.url());
}

BOOST_AUTO_TEST_CASE(a_replica_is_named_as_the_cause)
{
    redis_server master;
    redis_server server;
    server({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
    check_refusal(server, "replica", "replica");
}

BOOST_AUTO_TEST_CASE(a_server_that_loads_its_data_is_named_as_the_cause)
{
    // Loading takes at least a minute.
    redis_server server(
        {"--rdbcompression", "no", "--key-load-delay", "20000", "--loading-process-events-interval-bytes", "1024"});
    server({"EVAL", "for i = 1, 3000 do redis.call('SET', i, string.rep('x', 1024)) end", "0"});
    server({"SAVE"});
    server.kill();
    server.start();
    check_refusal(server, "loading", "LOADING");
}

BOOST_AUTO_TEST_CASE(a_server_that_is_busy_with_a_script_is_named_as_the_cause)
{
    redis_server server;
    server({"CONFIG", "SET", "lua-time-limit", "1"});
    std::thread endless([&] { redis_shell(server.port())({"EVAL", "while true do end", "0"}); });
    while (server({"PING"}).find("BUSY") == std::string::npos)
        std::this_thread::yield();
    check_refusal(server, "busy with a script", "BUSY");
    server({"SCRIPT", "KILL"});
    endless.join();
}

BOOST_AUTO_TEST_CASE(refused_operations_are_reported_once_for_each_cause)
{
    redis_server server;
    observed_locker env(server.url());
    const auto warnings_about = [&](std::string_view word) {
        return std::ranges::count_if(
            env.log->warnings, [&](const std::string& each) { return each.find(word) != std::string::npos; });
    };
    server({"RPUSH", "{colock}:k", "foreign"});
    for (int i = 0; i < 2; ++i) {
        const auto failed = env.failure_of(env.locks->acquire("k"));
        BOOST_TEST((failed.code() == errc::misconfigured_backend), failed.what());
    }
    BOOST_TEST(warnings_about("WRONGTYPE") == 1);
    server({"CONFIG", "SET", "maxmemory", "1"});
    for (int i = 0; i < 2; ++i) {
        const auto failed = env.failure_of(env.locks->acquire("other"));
        BOOST_TEST((failed.code() == errc::misconfigured_backend), failed.what());
    }
    BOOST_TEST(warnings_about("raise maxmemory") == 1);
    BOOST_TEST(warnings_about("WRONGTYPE") == 1);
    server({"CONFIG", "SET", "maxmemory", "0"});
}

namespace {

/// Returns how long `io.run()` takes from now on.
clock::duration time_to_end(asio::io_context& io)
{
    const auto begin = clock::now();
    io.restart();
    io.run();
    return clock::now() - begin;
}

} // namespace

BOOST_AUTO_TEST_CASE(unanswered_connection_does_not_keep_the_context_running)
{
    redis_server server;
    server.pause();
    // The kernel accepts the connection, but the paused server never answers the greeting.
    observed_locker env(server.url(), 30s);
    const auto failed = env.failure_of(env.locks->acquire("k", {.retry = within(200ms)}));
    BOOST_TEST((failed.code() == errc::unavailable), failed.what());
    // No operation needs the connection any more, so the attempt to connect ends long before the operation timeout.
    BOOST_TEST((time_to_end(env.io) < 8s));
    server.resume();
    env.io.restart();
    BOOST_TEST(run_coro(env.io, env.locks->acquire("k")).held());
}

BOOST_AUTO_TEST_CASE(lack_of_descriptors_is_named_as_the_cause, *boost::unit_test::precondition(may_lack_descriptors))
{
    const error_code none_free(EMFILE, boost::system::system_category());
    const temporary_folder folder;
    redis_server server({"--unixsocket", folder / "s"});
    const auto port = std::to_string(server.port());
    for (const auto& url : {server.url(), "redis://localhost:" + port, "redis+unix://" + (folder / "s").string()}) {
        BOOST_TEST_CONTEXT(url)
        {
            observed_locker env(url, 2s);
            {
                const no_free_descriptors only_now;
                const auto failed = env.failure_of(env.locks->try_acquire("k"));
                BOOST_TEST((failed.code() == errc::unavailable), failed.what());
                BOOST_TEST((failed.cause() == none_free), failed.what());
                BOOST_TEST_REQUIRE(env.log->times("unreachable") == 1u);
                BOOST_TEST((env.log->causes.front() == none_free), env.log->causes.front().message());
            }
            auto held = run_coro(env.io, env.locks->acquire("k", {.retry = retry_policy::forever()}));
            run_coro(env.io, held.release());
        }
    }
}

BOOST_AUTO_TEST_CASE(server_of_another_protocol_is_named_as_the_cause)
{
    for (const std::string text :
        {"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n"})
    {
        BOOST_TEST_CONTEXT(text)
        {
            asio::io_context io;
            const peer other(io, [&](peer::talk& with) -> asio::awaitable<void> {
                co_await with.say(text);
                co_await with.hear("never");
            });
            const auto log = std::make_shared<event_log>();
            const locker locks(redis::make_adapter(io.get_executor(), {.url = other.url(), .operation_timeout = 2s}),
                {.observer = log});
            const auto failed =
                required_error<create_error>([&] { static_cast<void>(run_coro(io, locks.try_acquire("k"))); });
            BOOST_TEST(failed.detail().find("the peer is not a Redis server") != std::string::npos, failed.what());
            BOOST_TEST(run_coro(io, locks.shutdown(1s)).clean());
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
