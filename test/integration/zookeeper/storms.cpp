// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "one_server.hpp"
#include "support/random_mix.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/cancel_after.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace colock::testing {
namespace {

/// To the server, for one locker.
struct way
{
    explicit way(std::uint16_t port) : link(port) {}

    relay link;
    bool fails = false;
    int inside = 0;
};

/// Some that want a few locks in every way, at random, and see to it that nobody has one that another believes in.
struct crowd
{
    explicit crowd(std::uint32_t seed) : draw(seed) {}

    asio::awaitable<void> stay(locker by, way& over)
    {
        while (!enough)
            co_await take_one(by, over);
    }
    asio::awaitable<void> stay_for(locker by, way& over, int turns)
    {
        while (turns-- > 0)
            co_await take_one(by, over);
    }
    asio::awaitable<void> take_one(const locker& by, way& over)
    {
        const auto which = draw.below(visitors::keys);
        acquire_options how{.ttl = draw.once_in(4) ? 500ms : 30s, .retry = retry};
        if (draw.once_in(3))
            how.mode = lock_mode::shared;
        lease_timer patience(co_await asio::this_coro::executor);
        const std::chrono::microseconds limit = draw.once_in(3) ? draw.time_below(60ms) : 10min;
        auto [failed, held] = co_await by.async_acquire(
            visitors::key(which), how, asio::cancel_after(patience, limit, asio::as_tuple(asio::use_awaitable)));
        if (failed || !held.held())
            co_return;
        if (is_safe)
            seen[which].granted(held);
        ++over.inside;
        co_await sleep_for(draw.time_below(6ms));
        // Until he knows that the session is over, if it ends by that.
        while (over.fails && held.held())
            co_await sleep_for(5ms);
        --over.inside;
        seen[which].left(held);
        if (!draw.once_in(3))
            co_await held.release();
    }

    dice draw;
    std::array<witness, visitors::keys> seen;
    bool enough = false;
    /// Nobody ends a session but its owner, and time.
    bool is_safe = true;
    retry_policy retry = retry_policy::fixed(200ms);
};

/// Longer than a session of 2 s, or not.
std::chrono::microseconds how_long(dice& draw)
{
    return draw.once_in(2) ? 4s : draw.time_below(300ms);
}

asio::awaitable<void> hurt(way& to, dice& draw)
{
    for (int times = 0; times < 2; ++times) {
        if (draw.once_in(3)) {
            to.link.cut_at_bytes('/' + visitors::key(draw.seed()) + '/', draw.once_in(2) ? loss::reply : loss::request);
        } else {
            // Whoever is inside has something to lose.
            while (to.inside == 0)
                co_await sleep_for(1ms);
            const auto hurts = draw.once_in(2) ? &relay::refuse : &relay::silence;
            (to.link.*hurts)(to.fails = true);
            co_await sleep_for(how_long(draw));
            (to.link.*hurts)(to.fails = false);
        }
        co_await sleep_for(draw.time_below(600ms));
    }
    to.link.cut_at_any({}, loss::request);
}

asio::awaitable<void> hurt(zookeeper_server& server, dice& draw)
{
    for (int times = 0; times < 2; ++times) {
        co_await sleep_for(draw.time_below(800ms));
        server.pause();
        co_await sleep_for(how_long(draw));
        server.resume();
    }
}

struct storm : one_server
{
    void finish(std::vector<running<void>>& working)
    {
        until([&] { return std::ranges::all_of(working, [](const auto& each) { return each.done(); }); });
        for (auto& each : std::exchange(working, {}))
            each.get(io);
    }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(zookeeper_storms, storm)

BOOST_AUTO_TEST_CASE(a_crowd_whose_links_and_server_fail_at_random_is_granted_each_lock_one_at_a_time)
{
    crowd all(random_mix::first_seed());
    std::vector<locker> lockers;
    std::vector<std::unique_ptr<way>> ways;
    std::vector<running<void>> faults;
    std::vector<running<void>> working;
    for (int i = 0; i < 4; ++i) {
        auto& over = *ways.emplace_back(std::make_unique<way>(server->port()));
        const auto by = add(2s, zookeeper_url(over.link.port()));
        lockers.push_back(by);
        for (int j = 0; j < 5; ++j)
            working.push_back(start(io, all.stay(by, over)));
        faults.push_back(start(io, hurt(over, all.draw)));
    }
    faults.push_back(start(io, hurt(*server, all.draw)));
    finish(faults);
    all.enough = true;
    finish(working);
    // Now that no attempt fails, everybody is woken.
    all.retry = retry_policy::fixed(10min);
    for (std::size_t i = 0; i < lockers.size(); ++i) {
        for (int j = 0; j < 5; ++j)
            working.push_back(start(io, all.stay_for(lockers[i], *ways[i], 20)));
    }
    finish(working);
    for (const auto& each : all.seen)
        BOOST_TEST(each.grants > 0);
    check_end();
}

namespace {

/// Handlers run on several threads until it goes.
struct several_threads
{
    several_threads()
    {
        for (auto& each : threads)
            each = std::thread([this] { io.run(); });
    }
    several_threads(const several_threads&) = delete;
    several_threads& operator=(const several_threads&) = delete;
    ~several_threads()
    {
        io.stop();
        for (auto& each : threads)
            each.join();
    }

    asio::io_context io{3};
    asio::executor_work_guard<asio::io_context::executor_type> works{io.get_executor()};
    std::array<std::thread, 3> threads;
};

struct progress
{
    visitors inside;
    std::atomic<int> grants{0};
    std::atomic<bool> enough{false};
};

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

void wait_until(const std::function<bool()>& reached)
{
    const auto limit = lease_clock::now() + 60s;
    while (!reached()) {
        if (lease_clock::now() > limit)
            throw stuck("not reached in time");
        std::this_thread::sleep_for(1ms);
    }
}

} // namespace

BOOST_AUTO_TEST_CASE(a_crowd_on_several_threads_is_granted_each_lock_one_at_a_time_while_its_links_are_cut)
{
    dice draw(random_mix::first_seed());
    progress on;
    std::vector<locker> all;
    std::vector<std::future<void>> working;
    several_threads pool;
    for (int i = 0; i < 4; ++i) {
        auto how = options(10s, zookeeper_url(link.port()));
        // Sessions end in the midst of it, too.
        if (i % 2 == 0)
            how.idle_timeout = 0ms;
        const auto& by = all.emplace_back(zookeeper::make_adapter(pool.io.get_executor(), how));
        for (int j = 0; j < 6; ++j) {
            working.push_back(asio::co_spawn(
                asio::make_strand(pool.io), visit_until_enough(by, on, dice(draw.seed())), asio::use_future));
        }
    }
    for (std::uint64_t cuts = 1; cuts <= 3; ++cuts) {
        const auto before = on.grants.load();
        wait_until([&] { return on.grants > before + 50; });
        link.refuse(true);
        link.refuse(false);
        wait_until([&] { return all[1].stats().reconnects >= cuts && all[3].stats().reconnects >= cuts; });
    }
    on.enough = true;
    for (auto& each : working) {
        BOOST_TEST_REQUIRE((each.wait_for(60s) == std::future_status::ready));
        each.get();
    }
    for (const auto& by : all)
        BOOST_TEST(asio::co_spawn(pool.io, by.shutdown(10s), asio::use_future).get().clean());
    for (const auto& wrong : on.inside.wrong())
        BOOST_ERROR(wrong);
    BOOST_TEST(nodes().empty());
}

/// Whatever is under way, and whether its lockers go before it or after it.
BOOST_AUTO_TEST_CASE(a_context_may_go_at_any_moment_of_a_storm)
{
    auto draw = dice(random_mix::first_seed());
    way over(server->port());
    for (int round = 0; round < 15; ++round) {
        crowd those(draw.seed());
        std::vector<locker> all;
        std::optional<asio::io_context> own(std::in_place);
        for (int i = 0; i < 3; ++i) {
            auto how = options(2s, zookeeper_url(over.link.port()));
            // What the ones before have left stands in nobody's way.
            how.url += '/' + std::to_string(round);
            how.idle_timeout = draw.once_in(2) ? 50ms : 0ms;
            all.emplace_back(zookeeper::make_adapter(own->get_executor(), how));
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
            for (const auto each : sessions_of(server->port(), chroot())) {
                try {
                    end_session(server->port(), each);
                } catch (const std::runtime_error&) {
                    // It was over before that.
                }
            }
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
    }
    until([&] { return nodes().empty(); });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace colock::testing
