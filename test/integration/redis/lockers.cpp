// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "fixture.hpp"
#include "support/print.hpp"

#include <colock/locker.hpp>

#include <boost/asio/cancel_after.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace colock::testing {

namespace {

/// Two lockers, as of two processes, of which one has a link that fails.
struct two_lockers
{
    explicit two_lockers(locker_options options = {}) : between(server.port())
    {
        redis::options through;
        through.url = between.url();
        through.health_interval = 200ms;
        redis::options direct;
        direct.url = server.url();
        ours.emplace(redis::make_adapter(io.get_executor(), through), options);
        theirs.emplace(redis::make_adapter(io.get_executor(), direct), options);
    }

    /// Both end well, and their counters agree with what has happened. `given_up`: acquires that ended without a lock
    /// after something had been sent.
    void check_end(std::uint64_t given_up = 0)
    {
        for (auto* each : {&*ours, &*theirs}) {
            const auto report = run_coro(io, each->shutdown(20s));
            BOOST_TEST(report.clean());
            BOOST_TEST(report.unproven == 0u);
            check_balance(each->stats(), each == &*ours ? given_up : 0);
        }
        const auto left = server({"KEYS", "*"});
        BOOST_TEST((left.empty() || left == "{colock}#fence\n"), left);
        ours.reset();
        theirs.reset();
        io.restart();
        io.run_for(30s);
        BOOST_TEST(io.stopped());
    }

    redis_server server;
    redis_relay between;
    asio::io_context io;
    std::optional<locker> ours;
    std::optional<locker> theirs;
};

/// Quick to try again, so that a test need not wait long.
locker_options eager()
{
    locker_options options;
    options.retry = retry_policy::fixed(20ms);
    return options;
}

constexpr auto short_ttl = 1500ms;

struct fault
{
    const char* name;
    void (relay::*set)(bool);
};
constexpr std::array faults{fault{"silence", &relay::silence}, fault{"refusal", &relay::refuse}};

} // namespace

BOOST_AUTO_TEST_SUITE(redis_lockers_and_faults)

BOOST_AUTO_TEST_CASE(a_holder_hears_of_its_loss_before_the_next_is_granted)
{
    for (const auto& what : faults) {
        for (const auto mode : {lock_mode::exclusive, lock_mode::shared}) {
            BOOST_TEST_CONTEXT(what.name << ", shared: " << (mode == lock_mode::shared))
            {
                two_lockers f;
                auto held = run_coro(f.io, f.ours->acquire("k", {.ttl = short_ttl, .mode = mode}));
                auto lost = start(f.io, held.lost());
                auto next = start(f.io, f.theirs->acquire("k", {.ttl = short_ttl}));
                (f.between.*what.set)(true);
                run_until(f.io, [&] {
                    if (next.done())
                        BOOST_TEST(lost.done());
                    return lost.done();
                });
                BOOST_TEST(!next.done());
                BOOST_TEST(!held.held());
                BOOST_TEST(lost.get(f.io) == lost_reason::expired);
                run_coro(f.io, next.get(f.io).release());
                (f.between.*what.set)(false);
                run_until(f.io, [&] { return f.ours->stats().settling == 0; });
                BOOST_TEST(f.ours->stats().lost(lost_reason::expired) == 1u);
                BOOST_TEST(f.ours->stats().settled == 1u);
                f.check_end();
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_body_is_stopped_before_the_next_is_granted)
{
    for (const auto& what : faults) {
        BOOST_TEST_CONTEXT(what.name)
        {
            locker_options options;
            options.operation_timeout = 1s;
            two_lockers f(options);
            bool inside = false;
            const auto work = [&](lock&) -> asio::awaitable<void> {
                inside = true;
                struct leave
                {
                    bool& flag;
                    ~leave() { flag = false; }
                } const left{inside};
                asio::steady_timer forever(f.io, 1h);
                co_await forever.async_wait(asio::use_awaitable);
            };
            auto body = start(f.io, f.ours->with_lock("k", {.ttl = short_ttl}, work));
            run_until(f.io, [&] { return inside && f.ours->stats().renewals > 0; });
            auto next = start(f.io, f.theirs->acquire("k", {.ttl = short_ttl}));
            (f.between.*what.set)(true);
            run_until(f.io, [&] {
                if (next.done())
                    BOOST_TEST(!inside);
                return next.done();
            });
            BOOST_CHECK_THROW(body.get(f.io), lost_error);
            run_coro(f.io, next.get(f.io).release());
            (f.between.*what.set)(false);
            f.check_end();
        }
    }
}

BOOST_AUTO_TEST_CASE(a_short_fault_loses_nothing)
{
    for (const auto& what : faults) {
        BOOST_TEST_CONTEXT(what.name)
        {
            two_lockers f(eager());
            auto held = run_coro(f.io, f.ours->acquire("k", {.ttl = 30s}));
            auto next = start(f.io, f.ours->acquire("k", {.ttl = 30s}));
            auto rival = start(f.io, f.theirs->acquire("k", {.ttl = 30s}));
            run_until(f.io, [&] { return f.theirs->stats().waiting == 1; });
            (f.between.*what.set)(true);
            auto extended = start(f.io, held.extend(30s));
            asio::steady_timer passed(f.io, 700ms);
            bool over = false;
            passed.async_wait([&](const error_code&) { over = true; });
            run_until(f.io, [&] { return over; });
            (f.between.*what.set)(false);
            try {
                extended.get(f.io);
            } catch (const extend_error& refused) {
                // Nobody can know, but the holder still holds.
                BOOST_TEST(refused.code() == errc::outcome_unknown);
            }
            BOOST_TEST(held.held());
            BOOST_TEST(run_coro(f.io, held.is_locked()));
            run_coro(f.io, held.release());
            run_until(f.io, [&] { return next.done() || rival.done(); });
            auto* const first = next.done() ? &next : &rival;
            auto* const second = first == &next ? &rival : &next;
            run_coro(f.io, first->get(f.io).release());
            run_coro(f.io, second->get(f.io).release());
            f.check_end();
        }
    }
}

BOOST_AUTO_TEST_CASE(a_release_behind_a_silent_link_ends_in_time)
{
    for (const bool others_wait : {false, true}) {
        BOOST_TEST_CONTEXT("a local waiter: " << others_wait)
        {
            redis_server server;
            redis_relay between(server.port());
            asio::io_context io;
            locker_options options;
            options.operation_timeout = 1s;
            locker locks(redis::make_adapter(
                             io.get_executor(), {.url = between.url(), .operation_timeout = 1s, .health_interval = 1h}),
                options);
            auto held = run_coro(io, locks.acquire("k", {.ttl = 60s}));
            std::optional<running<lock>> next;
            if (others_wait) {
                next.emplace(start(io, locks.acquire("k", {.ttl = 60s})));
                run_until(io, [&] { return locks.stats().waiting == 1; });
            }
            between.silence(true);
            const auto begin = std::chrono::steady_clock::now();
            run_coro(io, held.release());
            BOOST_TEST((std::chrono::steady_clock::now() - begin < 10s));
            BOOST_TEST(!held.held());
            between.silence(false);
            if (next)
                run_coro(io, next->get(io).release(on_failure::raise));
            BOOST_TEST(run_coro(io, locks.shutdown(20s)).clean());
            BOOST_TEST(server({"KEYS", "{colock}:*"}).empty());
            BOOST_TEST(locks.stats().unproven == 0u);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_crowd_in_one_locker_lets_another_have_its_turn)
{
    redis_server server;
    asio::io_context io;
    locker crowd(redis::make_adapter(io.get_executor(), {.url = server.url()}));
    locker single(redis::make_adapter(io.get_executor(), {.url = server.url()}));
    bool over = false;
    std::vector<running<void>> all;
    for (int i = 0; i < 8; ++i) {
        all.push_back(start(io, [](locker& through, const bool& enough) -> asio::awaitable<void> {
            while (!enough) {
                auto held = co_await through.acquire("k");
                co_await held.release();
            }
        }(crowd, over)));
    }
    for (int turn = 0; turn < 10; ++turn) {
        auto next = start(io, single.acquire("k"));
        const auto before = crowd.stats().grants;
        run_until(io, [&] { return next.done(); });
        // Seventeen, if it is woken in time at the first opportunity.
        BOOST_TEST(crowd.stats().grants - before < 1000u);
        run_coro(io, next.get(io).release());
    }
    over = true;
    for (auto& each : all)
        each.get(io);
    BOOST_TEST(run_coro(io, crowd.shutdown(5s)).clean());
    BOOST_TEST(run_coro(io, single.shutdown(5s)).clean());
}

BOOST_AUTO_TEST_CASE(what_is_cancelled_behind_a_dead_link_is_settled)
{
    for (const auto& what : faults) {
        BOOST_TEST_CONTEXT(what.name)
        {
            two_lockers f(eager());
            run_coro(f.io, run_coro(f.io, f.ours->acquire("warm")).release());
            (f.between.*what.set)(true);
            bool over = false;
            error_code code;
            f.ours->async_acquire("k", asio::cancel_after(100ms, [&](error_code ended, lock) {
                code = ended;
                over = true;
            }));
            run_until(f.io, [&] { return over; });
            BOOST_TEST(code == asio::error::operation_aborted);
            (f.between.*what.set)(false);
            run_until(f.io, [&] { return f.ours->stats().settling == 0; });
            f.check_end(1);
        }
    }
}

BOOST_AUTO_TEST_CASE(many_holders_and_many_cuts_add_up)
{
    two_lockers f(eager());
    constexpr int workers = 8;
    constexpr int rounds = 20;
    std::array<int, 3> inside{};
    const auto work = [&](locker& through, int worker) -> asio::awaitable<void> {
        for (int round = 0; round < rounds; ++round) {
            const auto key = static_cast<std::size_t>(worker + round) % inside.size();
            auto held = co_await through.acquire(std::to_string(key), {.ttl = 60s});
            BOOST_TEST(++inside[key] == 1);
            asio::steady_timer pause(f.io, 5ms);
            co_await pause.async_wait(asio::use_awaitable);
            if (round % 3 == 0) {
                try {
                    co_await held.extend(60s);
                } catch (const extend_error& refused) {
                    BOOST_TEST(refused.code() == errc::outcome_unknown);
                }
            }
            BOOST_TEST(held.held());
            --inside[key];
            co_await held.release();
            auto reader = co_await through.acquire("r", {.ttl = 60s, .mode = lock_mode::shared, .max_holders = 3});
            co_await pause.async_wait(asio::use_awaitable);
            co_await reader.release();
        }
    };
    std::vector<running<void>> all;
    for (int worker = 0; worker < workers; ++worker)
        all.push_back(start(f.io, work(worker % 4 == 0 ? *f.theirs : *f.ours, worker)));
    const auto done = [&] { return std::ranges::all_of(all, [](const auto& each) { return each.done(); }); };
    int cuts = 0;
    constexpr std::array words{"EVALSHA", "SET"};
    while (!done() && cuts < 24) {
        f.between.cut_at(
            words[static_cast<std::size_t>(cuts) % words.size()], cuts % 3 == 0 ? loss::request : loss::reply);
        ++cuts;
        run_until(f.io, [&] { return done() || f.between.cuts() == cuts; });
    }
    run_until(f.io, done, std::source_location::current(), {.time = 60s});
    for (auto& each : all)
        each.get(f.io);
    BOOST_TEST(f.between.cuts() >= 6);
    const auto total = f.ours->stats().grants + f.theirs->stats().grants;
    BOOST_TEST(total == static_cast<std::uint64_t>(2 * workers * rounds));
    f.check_end();
}

BOOST_AUTO_TEST_CASE(many_threads_and_a_quorum_with_a_bad_link_add_up)
{
    redis_server servers[3];
    redis_relay between(servers[2].port());
    constexpr int workers = 12;
    constexpr int rounds = 15;
    std::array<std::atomic<int>, 4> inside{};
    std::atomic<int> overlaps{0};
    std::atomic<int> failed{0};
    asio::io_context io;
    auto idle = asio::make_work_guard(io);
    locker locks(redis::make_quorum(io.get_executor(), {servers[0].url(), servers[1].url(), between.url()},
                     {.operation_timeout = 10s, .poll_interval = 5ms}),
        eager());
    const auto work = [&](int worker) -> asio::awaitable<void> {
        for (int round = 0; round < rounds; ++round) {
            const auto key = static_cast<std::size_t>(worker + round) % inside.size();
            co_await locks.with_lock(std::to_string(key), {.ttl = 60s}, [&](lock& held) -> asio::awaitable<void> {
                overlaps += ++inside[key] == 1 ? 0 : 1;
                asio::steady_timer pause(co_await asio::this_coro::executor, 1ms);
                co_await pause.async_wait(asio::use_awaitable);
                // Two of three are well.
                try {
                    co_await held.extend(60s);
                } catch (const extend_error&) {
                    ++failed;
                }
                --inside[key];
            });
        }
    };
    std::vector<std::future<void>> all;
    for (int worker = 0; worker < workers; ++worker)
        all.push_back(asio::co_spawn(io, work(worker), asio::use_future));
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([&io] { io.run(); });
    const auto done = [&] {
        return std::ranges::all_of(all, [](auto& each) { return each.wait_for(0s) == std::future_status::ready; });
    };
    for (int cuts = 0; cuts < 10 && !done(); ++cuts) {
        between.cut_at(cuts % 2 == 0 ? "EVALSHA" : "SET", cuts % 3 == 0 ? loss::request : loss::reply);
        while (between.cuts() == cuts && !done())
            std::this_thread::sleep_for(1ms);
    }
    for (auto& each : all)
        each.get();
    const auto report = asio::co_spawn(io, locks.shutdown(20s), asio::use_future).get();
    idle.reset();
    for (auto& each : threads)
        each.join();
    BOOST_TEST(report.clean());
    BOOST_TEST(overlaps == 0);
    BOOST_TEST(failed == 0);
    BOOST_TEST(between.cuts() > 0);
    check_balance(locks.stats());
    for (auto& server : servers)
        BOOST_TEST(server({"KEYS", "{colock}:*"}).empty());
}

BOOST_AUTO_TEST_CASE(many_threads_and_many_cuts_add_up)
{
    redis_server server;
    redis_relay between(server.port());
    constexpr int workers = 24;
    constexpr int rounds = 15;
    std::array<std::atomic<int>, 4> inside{};
    std::atomic<int> overlaps{0};
    asio::io_context io;
    auto idle = asio::make_work_guard(io);
    locker locks(redis::make_adapter(io.get_executor(), {.url = between.url()}), eager());
    const auto work = [&](int worker) -> asio::awaitable<void> {
        for (int round = 0; round < rounds; ++round) {
            const auto key = static_cast<std::size_t>(worker + round) % inside.size();
            co_await locks.with_lock(std::to_string(key), {.ttl = 60s}, [&](lock&) -> asio::awaitable<void> {
                overlaps += ++inside[key] == 1 ? 0 : 1;
                asio::steady_timer pause(co_await asio::this_coro::executor, 1ms);
                co_await pause.async_wait(asio::use_awaitable);
                --inside[key];
            });
            auto reader = co_await locks.acquire("r", {.ttl = 60s, .mode = lock_mode::shared});
            co_await reader.release();
        }
    };
    std::vector<std::future<void>> all;
    for (int worker = 0; worker < workers; ++worker)
        all.push_back(asio::co_spawn(io, work(worker), asio::use_future));
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
        threads.emplace_back([&io] { io.run(); });
    const auto done = [&] {
        return std::ranges::all_of(all, [](auto& each) { return each.wait_for(0s) == std::future_status::ready; });
    };
    for (int cuts = 0; cuts < 10 && !done(); ++cuts) {
        between.cut_at(cuts % 2 == 0 ? "EVALSHA" : "SET", cuts % 3 == 0 ? loss::request : loss::reply);
        while (between.cuts() == cuts && !done())
            std::this_thread::sleep_for(1ms);
    }
    for (auto& each : all)
        each.get();
    const auto report = asio::co_spawn(io, locks.shutdown(20s), asio::use_future).get();
    idle.reset();
    for (auto& each : threads)
        each.join();
    BOOST_TEST(report.clean());
    BOOST_TEST(overlaps == 0);
    BOOST_TEST(between.cuts() > 3);
    BOOST_TEST(locks.stats().grants == static_cast<std::uint64_t>(2 * workers * rounds));
    check_balance(locks.stats());
    const auto left = server({"KEYS", "*"});
    BOOST_TEST((left.empty() || left == "{colock}#fence\n"), left);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
