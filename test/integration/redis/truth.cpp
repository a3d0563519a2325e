// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/print.hpp"

#include <colock/locker.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace colock::testing {
namespace {

using clock = std::chrono::steady_clock;

const error_code refused = boost::asio::error::connection_refused;

/// Hears what an operator would.
struct ears final : observer
{
    void ready(std::string_view) noexcept override { heard.emplace_back("ready"); }
    void suspended(std::string_view, const error_code&) noexcept override { heard.emplace_back("suspended"); }
    void reconnected(std::string_view) noexcept override { heard.emplace_back("reconnected"); }
    void unreachable(std::string_view, const error_code& why, std::string_view address) noexcept override
    {
        heard.push_back("unreachable");
        causes.push_back(why);
        addresses.emplace_back(address);
    }
    void waiting(std::string_view) noexcept override { heard.emplace_back("waiting"); }
    void lost(std::string_view, lost_reason reason) noexcept override { losses.push_back(reason); }

    [[nodiscard]] std::size_t times(std::string_view what) const
    {
        return static_cast<std::size_t>(std::ranges::count(heard, what));
    }

    std::vector<std::string> heard;
    std::vector<error_code> causes;
    std::vector<std::string> addresses;
    std::vector<lost_reason> losses;
};

/// A locker on some port, with somebody who listens.
struct observed
{
    explicit observed(std::string url, std::chrono::milliseconds timeout = 5s)
    {
        redis::options settings;
        settings.url = std::move(url);
        settings.operation_timeout = timeout;
        settings.health_interval = 200ms;
        locks.emplace(redis::make_adapter(io.get_executor(), std::move(settings)),
            locker_options{.operation_timeout = timeout, .observer = told});
    }
    ~observed()
    {
        if (locks)
            run_coro(io, locks->shutdown(1s));
    }

    template <class T>
    error failure_of(asio::awaitable<T> verb)
    {
        try {
            static_cast<void>(run_coro(io, std::move(verb)));
        } catch (const error& failed) {
            return failed;
        }
        BOOST_ERROR("was to fail");
        return {{}, {}};
    }

    asio::io_context io;
    std::shared_ptr<ears> told = std::make_shared<ears>();
    std::optional<locker> locks;
};

std::string nobodys_url()
{
    return "redis://127.0.0.1:" + std::to_string(free_port());
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_truth)

BOOST_AUTO_TEST_CASE(an_absent_server_is_told_at_once_and_is_no_busy_lock)
{
    const auto url = nobodys_url();
    observed on(url, 600ms);
    // With all defaults: it waits for ever, but not in silence.
    auto first = start(on.io, on.locks->acquire("k"));
    run_until(on.io, [&] { return on.told->times("unreachable") > 0; });
    BOOST_TEST((on.told->causes.front() == refused));
    BOOST_TEST("redis://" + on.told->addresses.front() == url);

    for (const auto& policy : {retry_policy::forever().total_time(500ms), retry_policy::fixed(100ms).times(2)}) {
        const auto failed = on.failure_of(on.locks->acquire("other", {.retry = policy}));
        BOOST_TEST((failed.code() == errc::unavailable), failed.what());
        BOOST_TEST((failed.cause() == refused), failed.what());
        BOOST_TEST(failed.attempts() >= 1u);
        // Behind the first, without a word to the server.
        const auto behind = on.failure_of(on.locks->acquire("k", {.retry = policy}));
        BOOST_TEST((behind.code() == errc::unavailable), behind.what());
        BOOST_TEST((behind.cause() == refused), behind.what());
    }
    BOOST_TEST((on.failure_of(on.locks->try_acquire("k")).code() == errc::unavailable));
    BOOST_TEST(on.told->times("unreachable") == 1u);
    BOOST_TEST(!first.done());
    run_coro(on.io, on.locks->shutdown(5s));
    BOOST_CHECK_THROW(static_cast<void>(first.get(on.io)), create_error);
}

BOOST_AUTO_TEST_CASE(every_absent_node_of_a_quorum_is_told)
{
    std::vector<std::string> urls;
    while (urls.size() < 3) {
        if (auto one = nobodys_url(); std::ranges::find(urls, one) == urls.end())
            urls.push_back(std::move(one));
    }
    asio::io_context io;
    const auto told = std::make_shared<ears>();
    const locker locks(redis::make_quorum(io.get_executor(), urls), {.observer = told});
    auto waiting = start(io, locks.acquire("k"));
    run_until(io, [&] { return told->times("unreachable") == 3; });
    BOOST_TEST(told->times("waiting") == 0u);
    for (const auto limit : {100ms, 2000ms}) {
        try {
            static_cast<void>(
                run_coro(io, locks.acquire("other", {.retry = retry_policy::forever().total_time(limit)})));
            BOOST_ERROR("was to fail");
        } catch (const create_error& failed) {
            BOOST_TEST((failed.code() == errc::unavailable), failed.what());
            BOOST_TEST((failed.cause() == refused), failed.what());
        }
    }
    run_coro(io, locks.shutdown(1s));
    BOOST_CHECK_THROW(static_cast<void>(waiting.get(io)), create_error);
}

BOOST_AUTO_TEST_CASE(a_question_to_an_absent_server_has_not_been_sent)
{
    observed on(nobodys_url(), 600ms);
    for (const auto& failed : {on.failure_of(on.locks->is_locked("k")), on.failure_of(on.locks->list()),
             on.failure_of(on.locks->break_lock("k")), on.failure_of(on.locks->purge())})
    {
        BOOST_TEST((failed.code() == errc::unavailable), failed.what());
        BOOST_TEST((failed.cause() == refused), failed.what());
    }

    redis_server server;
    observed some(server.url(), 600ms);
    auto held = run_coro(some.io, some.locks->acquire("k"));
    server.kill();
    run_until(some.io, [&] { return some.told->times("suspended") > 0; });
    const auto asked = some.failure_of(held.is_locked());
    BOOST_TEST((asked.code() == errc::unavailable), asked.what());
    BOOST_TEST((asked.cause() == refused), asked.what());
    const auto extended = some.failure_of([](lock& of) -> asio::awaitable<int> {
        co_await of.extend(20s);
        co_return 1;
    }(held));
    BOOST_TEST((extended.code() == errc::unavailable), extended.what());
    BOOST_TEST((extended.cause() == refused), extended.what());
}

BOOST_AUTO_TEST_CASE(an_outage_ends_with_what_it_began)
{
    redis_server server;
    server.kill();
    observed on(server.url());
    auto waiting = start(on.io, on.locks->acquire("k"));
    run_until(on.io, [&] { return on.told->times("unreachable") > 0; });
    server.start();
    auto held = waiting.get(on.io);
    BOOST_TEST((on.told->heard == std::vector<std::string>{"unreachable", "ready"}));
    server.kill();
    auto next = start(on.io, on.locks->acquire("other"));
    run_until(on.io, [&] { return on.told->times("unreachable") == 2; });
    server.start();
    next.get(on.io) = {};
    BOOST_TEST((
        on.told->heard == std::vector<std::string>{"unreachable", "ready", "suspended", "unreachable", "reconnected"}));
}

/// That an acquire tells what the server said, and the observer too.
void check_refusal(redis_server& server, std::string_view cause, std::string_view detail)
{
    observed on(server.url());
    auto failed = on.failure_of(on.locks->acquire("k", {.retry = retry_policy::forever().total_time(2s)}));
    BOOST_TEST((failed.code() == errc::unavailable), failed.what());
    BOOST_TEST(failed.cause().message().find(cause) != std::string::npos, failed.what());
    BOOST_TEST(failed.detail().find(detail) != std::string::npos, failed.what());
    BOOST_TEST_REQUIRE(on.told->causes.size() == 1u);
    BOOST_TEST((on.told->causes.front() == failed.cause()));
    BOOST_TEST("redis://" + on.told->addresses.front() == server.url());
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
    // At least a minute of it.
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

BOOST_AUTO_TEST_CASE(a_body_that_loses_its_server_is_counted)
{
    struct
    {
        const char* name;
        void (*happens)(redis_server&);
        acquire_options options;
    } const cases[] = {
        {"killed", [](redis_server& server) { server.kill(); }, {.ttl = 1s}},
        {"stopped", [](redis_server& server) { server.pause(); }, {.ttl = 1s}},
        {"max_hold", [](redis_server&) {}, {.ttl = 1s, .max_hold = 1500ms}},
        {"not renewed", [](redis_server&) {}, {.ttl = 1s, .renewal = renewal::manual}},
    };
    for (const auto& each : cases) {
        BOOST_TEST_CONTEXT(each.name)
        {
            redis_server server;
            observed on(server.url(), 500ms);
            bool inside = false;
            auto body = start(on.io, on.locks->with_lock("k", each.options, [&]() -> asio::awaitable<void> {
                inside = true;
                asio::steady_timer forever(on.io, 1h);
                co_await forever.async_wait(asio::use_awaitable);
            }));
            run_until(on.io, [&] { return inside; });
            each.happens(server);
            BOOST_CHECK_THROW(body.get(on.io), lost_error);
            BOOST_TEST(on.locks->stats().lost(lost_reason::expired) == 1u);
            BOOST_TEST((on.told->losses == std::vector{lost_reason::expired}));
            server.resume();
        }
    }
}

namespace {

/// How long `io.run()` takes from now on.
clock::duration time_to_end(asio::io_context& io)
{
    const auto begin = clock::now();
    io.restart();
    io.run();
    return clock::now() - begin;
}

/// Two lockers of two processes: one holds, and both have somebody who waits.
struct waiting_pair
{
    explicit waiting_pair(redis_server& server) : ours(server.url(), 20s), theirs(server.url(), 20s)
    {
        held = run_coro(ours.io, ours.locks->acquire("k"));
        far.emplace(start(theirs.io, theirs.locks->acquire("k")));
        run_until(theirs.io, [&] { return theirs.locks->stats().waiting == 1; });
        near.emplace(start(ours.io, ours.locks->acquire("k")));
        run_until(ours.io, [&] { return ours.locks->stats().waiting == 1; });
    }

    /// Both end with their shutdown: nothing is left that would have to be waited for.
    void shut_down(std::chrono::milliseconds deadline)
    {
        for (auto* each : {&theirs, &ours}) {
            static_cast<void>(run_coro(each->io, each->locks->shutdown(deadline)));
            each->io.restart();
            each->io.poll();
            BOOST_TEST(each->io.stopped());
            each->locks.reset();
        }
        BOOST_CHECK_THROW(static_cast<void>(far->get(theirs.io)), create_error);
        BOOST_CHECK_THROW(static_cast<void>(near->get(ours.io)), create_error);
    }

    observed ours;
    observed theirs;
    lock held;
    std::optional<running<lock>> far;
    std::optional<running<lock>> near;
};

} // namespace

BOOST_AUTO_TEST_CASE(after_shutdown_run_returns_at_once)
{
    // Not even for the channel of the waiters, which otherwise stays subscribed for a second after the last of them.
    redis_server server;
    waiting_pair(server).shut_down(20s);
}

BOOST_AUTO_TEST_CASE(after_shutdown_no_lost_server_is_waited_for)
{
    redis_server server;
    for (const bool stopped : {false, true}) {
        BOOST_TEST_CONTEXT("stopped: " << stopped)
        {
            waiting_pair pair(server);
            if (stopped)
                server.pause();
            else
                server.kill();
            pair.shut_down(200ms);
            if (stopped)
                server.resume();
            else
                server.start();
        }
    }
}

BOOST_AUTO_TEST_CASE(without_a_connection_run_returns_at_once)
{
    observed on(nobodys_url(), 30s);
    // The attempt would be queued for far longer than anybody waits for it.
    for (int i = 0; i < 2; ++i) {
        on.io.restart();
        const auto failed = on.failure_of(on.locks->acquire("k", {.retry = retry_policy::forever().total_time(200ms)}));
        BOOST_TEST((failed.code() == errc::unavailable));
        BOOST_TEST((failed.cause() == refused));
        BOOST_TEST((time_to_end(on.io) < 8s));
        BOOST_TEST(on.locks->stats().settling == 0u);
        BOOST_TEST(on.locks->stats().unproven == 0u);
    }
}

BOOST_AUTO_TEST_CASE(a_connection_that_is_not_made_keeps_nobody)
{
    redis_server server;
    server.pause();
    // Connected, and never greeted.
    observed on(server.url(), 30s);
    const auto failed = on.failure_of(on.locks->acquire("k", {.retry = retry_policy::forever().total_time(200ms)}));
    BOOST_TEST((failed.code() == errc::outcome_unknown));
    // After a while in which somebody could have come.
    BOOST_TEST((time_to_end(on.io) < 8s));
    server.resume();
    on.io.restart();
    BOOST_TEST(run_coro(on.io, on.locks->acquire("k")).held());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
