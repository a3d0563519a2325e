// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/stress.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <cstddef>
#include <future>
#include <optional>
#include <source_location>
#include <utility>

namespace colock::testing {

using namespace std::chrono_literals;

asio::awaitable<void> random_clients::acquire_until_enough(locker by, faulty_connection& over)
{
    while (!enough)
        co_await acquire_once(by, over);
}

asio::awaitable<void> random_clients::acquire_times(locker by, faulty_connection& over, int count)
{
    while (count-- > 0)
        co_await acquire_once(by, over);
}

asio::awaitable<void> random_clients::acquire_once(const locker& by, faulty_connection& over)
{
    const auto which = draw.below(exclusion_checker::keys);
    acquire_options how{.ttl = draw.once_in(4) ? 500ms : 30s, .retry = retry};
    if (draw.once_in(3))
        how.mode = lock_mode::shared;
    lease_timer timer(co_await asio::this_coro::executor);
    const bool leaves_early = draw.once_in(3);
    const auto limit = leaves_early ? draw.time_below(60ms) : max_wait;
    const auto connections = by.stats().reconnects;
    auto [failed, held] = co_await by.async_acquire(
        exclusion_checker::key(which), how, asio::cancel_after(timer, limit, asio::as_tuple(asio::use_awaitable)));
    if (failed == asio::error::operation_aborted && !leaves_early)
        BOOST_TEST(
            by.stats().reconnects > connections, "missed wake-up of a waiter for " << exclusion_checker::key(which));
    if (failed || !held.held())
        co_return;
    if (is_safe)
        seen[which].on_grant(held);
    ++over.inside;
    co_await sleep_for(draw.time_below(6ms));
    // If the connection fails while the lock is held, wait until the lock is reported as lost.
    while (over.fails && held.held())
        co_await sleep_for(5ms);
    --over.inside;
    seen[which].on_release(held);
    if (!draw.once_in(3))
        co_await held.release();
}

asio::awaitable<void> inject_faults(faulty_connection& to, random_source& draw, std::chrono::microseconds lease,
    std::function<std::string(const std::string&)> encode_key)
{
    for (int times = 0; times < 2; ++times) {
        if (draw.once_in(3)) {
            to.link.cut_at_bytes(
                encode_key(exclusion_checker::key(draw.seed())), draw.once_in(2) ? loss::reply : loss::request);
        } else {
            // A fault is only interesting while a lock is held.
            while (to.inside == 0)
                co_await sleep_for(1ms);
            const auto set_fault = draw.once_in(2) ? &faulty_proxy::refuse : &faulty_proxy::silence;
            (to.link.*set_fault)(to.fails = true);
            co_await sleep_for(draw.once_in(2) ? 2 * lease : draw.time_below(300ms));
            (to.link.*set_fault)(to.fails = false);
        }
        co_await sleep_for(draw.time_below(600ms));
    }
    to.link.cut_at_any({}, loss::request);
}

namespace {

void finish(asio::io_context& io, std::vector<running<void>> working,
    std::source_location here = std::source_location::current())
{
    run_until(io, [&] { return std::ranges::all_of(working, [](const auto& each) { return each.done(); }); }, here,
        {.handlers = 100'000'000, .time = 120s});
    for (auto& each : working)
        each.get(io);
}

} // namespace

void run_through_faults(asio::io_context& io, random_clients& all, const std::vector<locker>& lockers,
    const std::vector<std::unique_ptr<faulty_connection>>& connections, std::vector<running<void>> faults)
{
    std::vector<running<void>> working;
    const auto start_for_each_locker = [&](auto begin) {
        for (std::size_t i = 0; i < lockers.size(); ++i) {
            for (int j = 0; j < 5; ++j)
                working.push_back(start(io, begin(lockers[i], *connections[i])));
        }
    };
    start_for_each_locker(
        [&](const locker& by, faulty_connection& over) { return all.acquire_until_enough(by, over); });
    finish(io, std::move(faults));
    all.enough = true;
    finish(io, std::exchange(working, {}));
    all.retry = retry_policy::fixed(10min);
    // This is longer than any lease, so that a lock that could not be released expires before a waiter gives up.
    all.max_wait = 45s;
    start_for_each_locker([&](const locker& by, faulty_connection& over) { return all.acquire_times(by, over, 20); });
    finish(io, std::move(working));
    for (const auto& each : all.seen)
        BOOST_TEST(each.grants > 0);
}

threaded_context::threaded_context()
{
    for (auto& each : threads)
        each = std::thread([this] { io.run(); });
}

threaded_context::~threaded_context()
{
    io.stop();
    for (auto& each : threads)
        each.join();
}

asio::awaitable<void> acquire_in_threads_until_enough(locker by, progress& env, random_source draw)
{
    while (!env.enough) {
        const auto which = draw.below(exclusion_checker::keys);
        acquire_options how;
        if (draw.once_in(3)) {
            how.mode = lock_mode::shared;
            how.max_holders = which == exclusion_checker::semaphore ? exclusion_checker::semaphore_size : 0;
        }
        lease_timer timer(co_await asio::this_coro::executor);
        const std::chrono::microseconds limit = draw.once_in(4) ? draw.time_below(30ms) : 10min;
        auto [failed, held] = co_await by.async_acquire(
            exclusion_checker::key(which), how, asio::cancel_after(timer, limit, asio::as_tuple(asio::use_awaitable)));
        if (failed) {
            if (failed != asio::error::operation_aborted)
                env.inside.note(failed.message());
            continue;
        }
        ++env.grants;
        {
            const exclusion_checker::holder inside(env.inside, held);
            co_await sleep_for(draw.time_below(4ms));
        }
        if (!draw.once_in(3))
            co_await held.release();
    }
}

void run_in_threads(threaded_context& pool, progress& env, const std::vector<locker>& all, random_source& draw,
    const std::function<void()>& meanwhile)
{
    std::vector<std::future<void>> working;
    for (const auto& by : all) {
        for (int i = 0; i < 6; ++i) {
            working.push_back(asio::co_spawn(asio::make_strand(pool.io),
                acquire_in_threads_until_enough(by, env, random_source(draw.seed())), asio::use_future));
        }
    }
    meanwhile();
    env.enough = true;
    for (auto& each : working) {
        BOOST_TEST_REQUIRE((each.wait_for(60s) == std::future_status::ready));
        each.get();
    }
    for (const auto& by : all)
        BOOST_TEST(asio::co_spawn(pool.io, by.shutdown(10s), asio::use_future).get().clean());
    for (const auto& violation : env.inside.violations())
        BOOST_ERROR(violation);
}

void context_destruction_test::run(faulty_connection& over)
{
    auto draw = random_source(random_mix::first_seed());
    for (int round = 0; round < 15; ++round) {
        random_clients clients(draw.seed());
        std::vector<locker> all;
        std::optional<asio::io_context> own(std::in_place);
        for (int i = 0; i < 3; ++i) {
            all.emplace_back(make(*own, round, draw.once_in(2) ? 50ms : 0ms));
            for (int j = 0; j < 5; ++j)
                asio::co_spawn(*own, clients.acquire_until_enough(all.back(), over), asio::detached);
        }
        own->run_for(draw.time_below(300ms));
        switch (draw.below(4)) {
        case 0:
            over.link.refuse(true);
            break;
        case 1:
            over.link.silence(true);
            break;
        case 2:
            clients.is_safe = false;
            inject_fault();
            break;
        default:
            break;
        }
        own->run_for(draw.time_below(300ms));
        if (draw.once_in(2))
            all.clear();
        if (draw.once_in(3))
            own->poll_one();
        own.reset();
        over.link.refuse(false);
        over.link.silence(false);
        end_fault();
    }
}

void wait_until(const std::function<bool()>& reached)
{
    const auto limit = lease_clock::now() + 60s;
    while (!reached()) {
        if (lease_clock::now() > limit)
            throw stuck("not reached in time");
        std::this_thread::sleep_for(1ms);
    }
}

} // namespace colock::testing
