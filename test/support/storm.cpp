// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/storm.hpp"

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

asio::awaitable<void> crowd::stay(locker by, way& over)
{
    while (!enough)
        co_await take_one(by, over);
}

asio::awaitable<void> crowd::stay_for(locker by, way& over, int turns)
{
    while (turns-- > 0)
        co_await take_one(by, over);
}

asio::awaitable<void> crowd::take_one(const locker& by, way& over)
{
    const auto which = draw.below(visitors::keys);
    acquire_options how{.ttl = draw.once_in(4) ? 500ms : 30s, .retry = retry};
    if (draw.once_in(3))
        how.mode = lock_mode::shared;
    lease_timer timer(co_await asio::this_coro::executor);
    const bool leaves_early = draw.once_in(3);
    const auto limit = leaves_early ? draw.time_below(60ms) : patience;
    const auto connections = by.stats().reconnects;
    auto [failed, held] = co_await by.async_acquire(
        visitors::key(which), how, asio::cancel_after(timer, limit, asio::as_tuple(asio::use_awaitable)));
    if (failed == asio::error::operation_aborted && !leaves_early)
        BOOST_TEST(by.stats().reconnects > connections, "missed wake-up of a waiter for " << visitors::key(which));
    if (failed || !held.held())
        co_return;
    if (is_safe)
        seen[which].granted(held);
    ++over.inside;
    co_await sleep_for(draw.time_below(6ms));
    // If the connection fails while the lock is held, wait until the lock is reported as lost.
    while (over.fails && held.held())
        co_await sleep_for(5ms);
    --over.inside;
    seen[which].left(held);
    if (!draw.once_in(3))
        co_await held.release();
}

asio::awaitable<void> hurt(
    way& to, dice& draw, std::chrono::microseconds lease, std::function<std::string(const std::string&)> in_words)
{
    for (int times = 0; times < 2; ++times) {
        if (draw.once_in(3)) {
            to.link.cut_at_bytes(in_words(visitors::key(draw.seed())), draw.once_in(2) ? loss::reply : loss::request);
        } else {
            // A fault is only interesting while a lock is held.
            while (to.inside == 0)
                co_await sleep_for(1ms);
            const auto hurts = draw.once_in(2) ? &relay::refuse : &relay::silence;
            (to.link.*hurts)(to.fails = true);
            co_await sleep_for(draw.once_in(2) ? 2 * lease : draw.time_below(300ms));
            (to.link.*hurts)(to.fails = false);
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

void live_through(asio::io_context& io, crowd& all, const std::vector<locker>& lockers,
    const std::vector<std::unique_ptr<way>>& ways, std::vector<running<void>> faults)
{
    std::vector<running<void>> working;
    const auto everybody = [&](auto begin) {
        for (std::size_t i = 0; i < lockers.size(); ++i) {
            for (int j = 0; j < 5; ++j)
                working.push_back(start(io, begin(lockers[i], *ways[i])));
        }
    };
    everybody([&](const locker& by, way& over) { return all.stay(by, over); });
    finish(io, std::move(faults));
    all.enough = true;
    finish(io, std::exchange(working, {}));
    all.retry = retry_policy::fixed(10min);
    // Longer than any lease: a lock that could not be released expires before this.
    all.patience = 45s;
    everybody([&](const locker& by, way& over) { return all.stay_for(by, over, 20); });
    finish(io, std::move(working));
    for (const auto& each : all.seen)
        BOOST_TEST(each.grants > 0);
}

several_threads::several_threads()
{
    for (auto& each : threads)
        each = std::thread([this] { io.run(); });
}

several_threads::~several_threads()
{
    io.stop();
    for (auto& each : threads)
        each.join();
}

asio::awaitable<void> visit_until_enough(locker by, progress& on, dice draw)
{
    while (!on.enough) {
        const auto which = draw.below(visitors::keys);
        acquire_options how;
        if (draw.once_in(3)) {
            how.mode = lock_mode::shared;
            how.max_holders = which == visitors::semaphore ? visitors::places : 0;
        }
        lease_timer patience(co_await asio::this_coro::executor);
        const std::chrono::microseconds limit = draw.once_in(4) ? draw.time_below(30ms) : 10min;
        auto [failed, held] = co_await by.async_acquire(
            visitors::key(which), how, asio::cancel_after(patience, limit, asio::as_tuple(asio::use_awaitable)));
        if (failed) {
            if (failed != asio::error::operation_aborted)
                on.inside.note(failed.message());
            continue;
        }
        ++on.grants;
        {
            const visitors::visit inside(on.inside, held);
            co_await sleep_for(draw.time_below(4ms));
        }
        if (!draw.once_in(3))
            co_await held.release();
    }
}

void visit_in_threads(several_threads& pool, progress& on, const std::vector<locker>& all, dice& draw,
    const std::function<void()>& meanwhile)
{
    std::vector<std::future<void>> working;
    for (const auto& by : all) {
        for (int i = 0; i < 6; ++i) {
            working.push_back(asio::co_spawn(
                asio::make_strand(pool.io), visit_until_enough(by, on, dice(draw.seed())), asio::use_future));
        }
    }
    meanwhile();
    on.enough = true;
    for (auto& each : working) {
        BOOST_TEST_REQUIRE((each.wait_for(60s) == std::future_status::ready));
        each.get();
    }
    for (const auto& by : all)
        BOOST_TEST(asio::co_spawn(pool.io, by.shutdown(10s), asio::use_future).get().clean());
    for (const auto& wrong : on.inside.wrong())
        BOOST_ERROR(wrong);
}

void doomed_contexts::run(way& over)
{
    auto draw = dice(random_mix::first_seed());
    for (int round = 0; round < 15; ++round) {
        crowd those(draw.seed());
        std::vector<locker> all;
        std::optional<asio::io_context> own(std::in_place);
        for (int i = 0; i < 3; ++i) {
            all.emplace_back(make(*own, round, draw.once_in(2) ? 50ms : 0ms));
            for (int j = 0; j < 5; ++j)
                asio::co_spawn(*own, those.stay(all.back(), over), asio::detached);
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
            those.is_safe = false;
            trouble();
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
        end_trouble();
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
