// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/print.hpp"

#include <colock/locker.hpp>

#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <string>
#include <utility>
#include <vector>

namespace colock::testing {

namespace {

/// Options with a short retry interval, so that a test need not wait long.
locker_options eager()
{
    locker_options options;
    options.retry = retry_policy::fixed(20ms);
    return options;
}

/// Runs `workers` coroutines while the proxy loses requests and replies, and then shuts the locker down.
shutdown_report run_under_cuts(asio::thread_pool& pool, redis_faulty_proxy& between, const locker& locks, int workers,
    const std::function<asio::awaitable<void>(int)>& work)
{
    std::vector<std::pair<std::string, loss>> cuts;
    for (int n = 0; n < 10; ++n)
        cuts.emplace_back(n % 2 == 0 ? "EVALSHA" : "SET", n % 3 == 0 ? loss::request : loss::reply);
    between.cut_in_turn(std::move(cuts));
    std::vector<std::future<void>> all;
    for (int worker = 0; worker < workers; ++worker)
        all.push_back(asio::co_spawn(pool, work(worker), asio::use_future));
    for (const auto& each : all)
        each.wait();
    for (auto& each : all)
        each.get();
    const auto report = asio::co_spawn(pool, locks.shutdown(20s), asio::use_future).get();
    pool.join();
    return report;
}

} // namespace

BOOST_AUTO_TEST_SUITE(redis_lockers_and_faults)

BOOST_AUTO_TEST_CASE(a_hand_over_to_a_shorter_ttl_is_announced_to_other_lockers)
{
    redis_server server;
    asio::io_context io;
    locker one(redis::make_adapter(io.get_executor(), {.url = server.url()}));
    locker other(redis::make_adapter(io.get_executor(), {.url = server.url()}));
    // The lock is not released and expires.
    const auto acquire_and_detach = [](locker by, std::string key) -> asio::awaitable<void> {
        auto held = co_await by.acquire(std::move(key), {.ttl = 3s});
        static_cast<void>(co_await held.detach());
    };
    // The waiter checks again when it receives a message, or when the lease that it knows has expired.
    const auto acquire_and_release = [](locker by, std::string key) -> asio::awaitable<void> {
        auto held = co_await by.acquire(std::move(key), {.retry = retry_policy::fixed(600s)});
        co_await held.release();
    };
    // First a single hand-over, then several at once.
    std::vector<std::string> keys{"a"};
    for (int round = 0; round < 2; ++round) {
        std::vector<lock> held;
        std::vector<running<void>> all;
        for (const auto& key : keys) {
            held.push_back(run_coro(io, one.acquire(key, {.ttl = 600s})));
            all.push_back(start(io, acquire_and_release(other, key)));
        }
        for (const auto& key : keys) {
            const auto channel = "{colock}:" + key;
            run_until(io, [&] { return server({"PUBSUB", "NUMSUB", channel}) == channel + "\n1\n"; });
            all.push_back(start(io, acquire_and_detach(one, key)));
        }
        run_until(io, [&] { return one.stats().waiting == keys.size(); });
        const auto begin = std::chrono::steady_clock::now();
        for (auto& each : held)
            all.push_back(start(io, each.release()));
        for (auto& each : all)
            each.get(io);
        BOOST_TEST((std::chrono::steady_clock::now() - begin < 60s));
        keys = {"b", "c", "d"};
    }
    run_coro(io, one.shutdown());
    run_coro(io, other.shutdown());
}

BOOST_AUTO_TEST_CASE(waiter_is_granted_as_soon_as_commands_can_be_sent_again)
{
    redis_server server;
    redis_faulty_proxy between(server.port());
    asio::io_context io;
    const auto events = std::make_shared<notes>();
    // The health interval is long, so that the connection with the unconfirmed subscription is not closed as silent.
    locker waiting_locker(redis::make_adapter(io.get_executor(), {.url = between.url(), .health_interval = 1min}),
        {.retry = retry_policy::fixed(1h), .observer = events});
    locker holding_locker(redis::make_adapter(io.get_executor(), {.url = server.url()}));
    auto held = run_coro(io, holding_locker.acquire("k", {.ttl = 1h}));
    auto waiting = start(io, waiting_locker.acquire("k"));
    run_until(io, [&] { return server({"PUBSUB", "NUMSUB", "{colock}:k"}) == "{colock}:k\n1\n"; });
    between.refuse(true);
    run_until(io, [&] { return events->suspensions == 1; });
    run_coro(io, held.release());
    // The message of the release was missed, and the next subscription is not confirmed. So no message can wake the
    // waiter.
    between.cut_at("SUBSCRIBE", loss::delayed_reply);
    between.refuse(false);
    waiting.get(io) = {};
    BOOST_TEST(events->reconnections == 1);
    between.deliver_replies();
    run_coro(io, waiting_locker.shutdown(1s));
}

BOOST_AUTO_TEST_CASE(busy_locker_does_not_starve_another)
{
    redis_server server;
    asio::io_context io;
    locker busy(redis::make_adapter(io.get_executor(), {.url = server.url()}));
    locker other_locker(redis::make_adapter(io.get_executor(), {.url = server.url()}));
    bool over = false;
    std::vector<running<void>> all;
    for (int i = 0; i < 8; ++i) {
        all.push_back(start(io, [](locker& through, const bool& enough) -> asio::awaitable<void> {
            while (!enough) {
                auto held = co_await through.acquire("k");
                co_await held.release();
            }
        }(busy, over)));
    }
    for (int turn = 0; turn < 10; ++turn) {
        auto next = start(io, other_locker.acquire("k"));
        const auto before = busy.stats().grants;
        run_until(io, [&] { return next.done(); });
        // About 17 grants, if the single waiter is woken at the first opportunity.
        BOOST_TEST(busy.stats().grants - before < 1000u);
        run_coro(io, next.get(io).release());
    }
    over = true;
    for (auto& each : all)
        each.get(io);
    BOOST_TEST(run_coro(io, busy.shutdown(5s)).clean());
    BOOST_TEST(run_coro(io, other_locker.shutdown(5s)).clean());
}

BOOST_AUTO_TEST_CASE(many_threads_and_a_quorum_with_a_bad_link_add_up)
{
    redis_server servers[3];
    redis_faulty_proxy between(servers[2].port());
    constexpr int workers = 12;
    constexpr int rounds = 15;
    std::array<std::atomic<int>, 4> inside{};
    std::atomic<int> overlaps{0};
    std::atomic<int> failed{0};
    asio::thread_pool pool(3);
    locker locks(redis::make_quorum(pool.get_executor(), {servers[0].url(), servers[1].url(), between.url()},
                     {.operation_timeout = 10s, .poll_interval = 5ms}),
        eager());
    const auto work = [&](int worker) -> asio::awaitable<void> {
        for (int round = 0; round < rounds; ++round) {
            const auto key = static_cast<std::size_t>(worker + round) % inside.size();
            co_await locks.with_lock(std::to_string(key), {.ttl = 60s}, [&](lock& held) -> asio::awaitable<void> {
                overlaps += ++inside[key] == 1 ? 0 : 1;
                asio::steady_timer pause(co_await asio::this_coro::executor, 1ms);
                co_await pause.async_wait(asio::use_awaitable);
                // The proxy affects only one of the three nodes, so every extension succeeds.
                try {
                    co_await held.extend(60s);
                } catch (const extend_error&) {
                    ++failed;
                }
                --inside[key];
            });
        }
    };
    const auto report = run_under_cuts(pool, between, locks, workers, work);
    BOOST_TEST(report.clean());
    BOOST_TEST(overlaps == 0);
    BOOST_TEST(failed == 0);
    BOOST_TEST(between.cuts() > 0);
    check_balance(locks.stats());
    for (auto& server : servers)
        BOOST_TEST(server({"KEYS", "{colock}:*"}).empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
