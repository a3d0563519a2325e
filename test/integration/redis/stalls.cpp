// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/peer.hpp"
#include "support/print.hpp"

#include <colock/locker.hpp>

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace colock::testing {
namespace {

/// A locker whose event loop is blocked from time to time.
struct stalling
{
    explicit stalling(redis::options settings = {})
    {
        settings.url = server.url();
        backend = redis::make_adapter(io.get_executor(), std::move(settings));
        backend->attach(events);
        // An attempt that fails is not repeated within a test.
        locks.emplace(backend, locker_options{.retry = retry_policy::fixed(1h)});
    }
    ~stalling() { run_coro(io, locks->shutdown(5s)); }

    /// Load of 64 workers, which acquire and release until `finished`. `pairs` counts the releases of all workers.
    struct load
    {
        bool finished = false;
        int pairs = 0;
        std::vector<running<void>> workers{};
    };
    void begin(load& background_load)
    {
        for (int i = 0; i < 64; ++i) {
            background_load.workers.push_back(
                start(io, [](locker through, load& counted, std::string key) -> asio::awaitable<void> {
                    while (!counted.finished) {
                        auto held = co_await through.acquire(key);
                        co_await held.release();
                        ++counted.pairs;
                    }
                }(*locks, background_load, "k" + std::to_string(i))));
        }
    }
    void end(load& background_load)
    {
        background_load.finished = true;
        for (auto& each : background_load.workers)
            each.get(io);
    }

    redis_server server;
    asio::io_context io;
    std::shared_ptr<notes> events = std::make_shared<notes>();
    std::shared_ptr<adapter> backend;
    std::optional<locker> locks;
};

} // namespace

BOOST_AUTO_TEST_SUITE(redis_stalls)

BOOST_AUTO_TEST_CASE(connection_survives_blocked_loop_while_idle)
{
    stalling f;
    {
        stalling::load first;
        f.begin(first);
        run_until(f.io, [&] { return first.pairs > 1000; });
        f.end(first);
    }
    std::this_thread::sleep_for(2500ms);
    {
        stalling::load second;
        f.begin(second);
        run_until(f.io, [&] { return second.pairs > 0; });
        f.end(second);
    }
    BOOST_TEST(f.events->suspensions == 0);
    BOOST_TEST(f.backend->reconnects() == 0u);
}

BOOST_AUTO_TEST_CASE(no_reply_is_lost_by_blocked_loop_under_load)
{
    stalling f({.operation_timeout = 3s});
    stalling::load background_load;
    f.begin(background_load);
    for (int i = 0; i < 2; ++i) {
        const int before = background_load.pairs;
        run_until(f.io, [&] { return background_load.pairs > before + 500; });
        std::this_thread::sleep_for(3500ms);
    }
    f.end(background_load);
    BOOST_TEST(f.events->suspensions == 0);
    BOOST_TEST(f.backend->reconnects() == 0u);
    const auto counted = f.locks->stats();
    BOOST_TEST(counted.retries == 0u);
    BOOST_TEST(counted.settled == 0u);
}

BOOST_AUTO_TEST_CASE(connection_survives_repeatedly_blocked_loop)
{
    redis_server server;
    client_side client({.url = server.url(), .idle_timeout = std::chrono::milliseconds::max(), .health_interval = 1s});
    client.test_driver.grant(driver::exclusive("k"));
    for (int i = 0; i < 4; ++i) {
        client.run_for(300ms);
        std::this_thread::sleep_for(1750ms);
    }
    client.run_for(2500ms);
    BOOST_TEST(client.events->suspensions == 0);
    // Health checks were sent, so the connection was checked.
    BOOST_TEST(server({"INFO", "commandstats"}).find("cmdstat_ping") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(silent_connection_is_replaced_at_once)
{
    redis_server server;
    redis_faulty_proxy between(server.port());
    client_side client(
        {.url = between.url(), .idle_timeout = std::chrono::milliseconds::max(), .health_interval = 200ms});
    const auto claim = driver::exclusive("k");
    client.test_driver.grant(claim);
    between.silence(true);
    run_until(client.io, [&] { return client.events->suspensions == 1; });
    between.silence(false);
    client.test_driver.check_held(claim);
    BOOST_TEST(client.events->reconnections == 1);
}

BOOST_AUTO_TEST_CASE(mute_server_is_left_after_connect_timeout)
{
    asio::io_context io;
    std::size_t accepted = 0;
    peer mute(io, [&](peer::talk& with) -> asio::awaitable<void> {
        ++accepted;
        while (co_await with.hear()) {
        }
    });
    const auto backend = redis::make_adapter(io.get_executor(),
        {.url = mute.url(), .operation_timeout = 30s, .connect_timeout = 100ms, .health_interval = 1min});
    auto pending = start(io, backend->create(sent_now(driver::exclusive("k"))));
    run_until(io, [&] { return accepted >= 3; });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
