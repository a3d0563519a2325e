// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "groups.hpp"

#include "core/collisions.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

namespace {

/// Another process: a locker on the rig's store, behind a script of its own.
struct neighbour
{
    std::shared_ptr<scripted_adapter> script;
    colock::locker locker;

    explicit neighbour(rig& on, timing answers = timing::posted)
        : script(std::make_shared<scripted_adapter>(on.memory, on.io().get_executor(), answers)), locker(able_as(on))
    {
    }

private:
    [[nodiscard]] std::shared_ptr<adapter> able_as(const rig& on) const
    {
        script->set_capabilities(on.script->capabilities());
        return script;
    }
};

} // namespace

BOOST_AUTO_TEST_SUITE(groups)

BOOST_AUTO_TEST_CASE(groups_that_run_into_each_other_in_step_get_out_of_it)
{
    const auto patient = retry_policy::exponential(20s, 2.0, 200s).jitter(0.5);
    const retry_policy policies[] = {patient, retry_policy(patient).times(5), retry_policy(patient).total_time(100s)};
    for (const auto& policy : policies) {
        // In one step they run into each other only where a queue grants to each what the other wants.
        for (const auto& [fifo, several] : {std::pair(true, false), {false, false}, {true, true}}) {
            rig on(behind::scripted);
            pretend(on, fifo, several);
            neighbour other(on);
            for (const auto& script : {on.script, other.script})
                slow_down(*script, 500ms);
            colock::locker rival(on.memory);
            auto b = on.run(rival.acquire("b", {.ttl = 1h}));
            const auto take_both = [&](colock::locker by) -> asio::awaitable<void> {
                auto group = co_await by.acquire_all({"a", "b"}, {.retry = policy});
                BOOST_TEST(group.held());
                co_await group.release();
            };
            auto first = on.start(take_both(*on.locker));
            on.advance_by_steps(5s, 100ms);
            auto a = on.run(rival.acquire("a", {.ttl = 1h}));
            auto second = on.start(take_both(other.locker));
            on.advance_by_steps(5s, 100ms);
            // One waits for b, the other for a: both wake in the same instant.
            a = {};
            b = {};
            on.advance_by_steps(40s, 100ms);
            BOOST_TEST_CONTEXT("fifo: " << fifo << ", in one step: " << several)
            {
                BOOST_TEST_REQUIRE(first.done());
                BOOST_TEST_REQUIRE(second.done());
            }
            first.get(on.io());
            second.get(on.io());
            BOOST_TEST_CONTEXT("fifo: " << fifo << ", in one step: " << several)
            for (const auto attempt : {operation::create, operation::create_all})
                BOOST_TEST(on.script->count(attempt) + other.script->count(attempt) < 40U);
            on.wind_down();
            on.check_clean();
        }
    }
}

BOOST_AUTO_TEST_CASE(a_stream_of_others_does_not_shut_a_group_out)
{
    for (const auto kind : {behind::memory, behind::scripted}) {
        rig on(kind);
        bool stop = false;
        const auto stream = [&]() -> asio::awaitable<void> {
            while (!stop) {
                auto held = co_await on.locker->acquire("b");
                lease_timer timer(co_await asio::this_coro::executor, 1s);
                co_await timer.async_wait(asio::deferred);
            }
        };
        std::vector<running<void>> others;
        for (int i = 0; i < 3; ++i)
            others.push_back(on.start(stream()));
        on.ready();
        auto waiting = on.start(on.locker->acquire_all({"a", "b"}));
        on.advance_by_steps(20s, 100ms);
        BOOST_TEST(waiting.done());
        stop = true;
        if (waiting.done())
            on.run(waiting.get(on.io()).release());
        on.advance_by_steps(10s, 100ms);
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_group_that_keeps_out_of_the_way_ends_at_once_when_it_has_to)
{
    enum class way
    {
        shutdown,
        orphan,
        cancel,
    };
    for (const auto ends : {way::shutdown, way::orphan, way::cancel}) {
        rig on(behind::scripted);
        take_one_by_one(on);
        // A lease that ends on the way: the next round comes after the policy's delay.
        let_first_lease_end(*on.script);
        asio::cancellation_signal cancel;
        std::optional<error_code> result;
        on.locker->async_acquire_all({"a", "b"}, {.ttl = 1s, .retry = retry_policy::fixed(1h)},
            asio::bind_cancellation_slot(cancel.slot(), [&](error_code code, const lock_group&) { result = code; }));
        on.ready();
        BOOST_TEST(!result);
        BOOST_TEST(on.stored().empty());
        if (ends == way::shutdown)
            BOOST_TEST(on.run(on.locker->shutdown()).unsettled.empty());
        else if (ends == way::orphan)
            on.locker.reset();
        else
            cancel.emit(asio::cancellation_type::total);
        on.ready();
        BOOST_TEST_REQUIRE(result.has_value());
        BOOST_TEST((ends == way::cancel ? *result == asio::error::operation_aborted : *result == errc::shutting_down));
        on.check_clean();
    }
}

BOOST_AUTO_TEST_CASE(a_group_that_loses_each_time_keeps_out_of_the_way_for_longer)
{
    rig on(behind::scripted);
    take_one_by_one(on);
    colock::locker rival(on.memory);
    std::optional<running<lock>> taken;
    const auto began = lease_clock::now();
    auto waiting = on.start(on.locker->acquire_all({"a", "b"}, {.retry = retry_policy::fixed(24h)}));
    for (std::size_t losses = 0; losses < 10; ++losses) {
        // Just when it has got as far as b, somebody else takes that.
        on.script->next(operation::create, step::pass().delay(1s).after([&] { taken = on.start(rival.acquire("b")); }));
        on.script->next(operation::create, step::pass().delay(1s));
        while (on.locker->stats().busy == losses)
            on.advance(200ms);
        on.run(taken->get(on.io()).release());
    }
    // The rounds took 20 s; the pauses are at random, of at most 1 + 2 + 4 + ... + 256 s.
    BOOST_TEST((lease_clock::now() - began >= 40s));
    while (!waiting.done())
        on.advance(1s);
    BOOST_TEST((lease_clock::now() - began < 20min));
    on.run(waiting.get(on.io()).release());
    on.check_clean();
}

BOOST_AUTO_TEST_CASE(pauses_double_from_one_round_trip_while_losses_come_in_a_row)
{
    using colock::detail::collisions;
    const lease_clock::time_point start = lease_clock::now();
    for (int again = 0; again < 50; ++again) {
        collisions met;
        // Each round takes two requests of 5 ms.
        auto now = start;
        const auto lose = [&](lease_clock::duration longest) {
            met.lost(now, now + 10ms, 2, longest);
            now += 10ms;
        };
        lose(1s);
        BOOST_TEST((met.in_a_row() == 1U && met.resume_at() == now));
        for (const auto bound : {5ms, 10ms, 20ms, 40ms, 70ms, 70ms}) {
            now = std::max(now, met.resume_at());
            lose(70ms);
            BOOST_TEST((met.resume_at() >= now && met.resume_at() <= now + bound));
        }
        BOOST_TEST(met.in_a_row() == 7U);
        // Who waits for long has not run into a rival's round.
        now += 1s;
        lose(1s);
        BOOST_TEST((met.in_a_row() == 1U && met.resume_at() == now));
        // No delay, no pause.
        lose(0s);
        BOOST_TEST((met.in_a_row() == 2U && met.resume_at() == now));
    }
    // A backend that answers at once, and a clock that stands still.
    collisions met;
    for (int n = 0; n < 20; ++n)
        met.lost(start, start, 2, 1s);
    BOOST_TEST(met.in_a_row() == 20U);
    BOOST_TEST((met.resume_at() > start && met.resume_at() <= start + 1s));
}

BOOST_AUTO_TEST_CASE(losses_among_many_come_in_a_row_although_each_comes_late)
{
    using colock::detail::collisions;
    const auto lose_again_and_again = [](lease_clock::duration between) {
        collisions met;
        auto now = lease_clock::now();
        for (int n = 0; n < 20; ++n) {
            met.lost(now, now + 2ms, 2, 1s);
            now = std::max(now + 2ms + between, met.resume_at());
        }
        return met.in_a_row();
    };
    BOOST_TEST(lose_again_and_again(1ms) == 20U);
    BOOST_TEST(lose_again_and_again(20ms) > 10U);
    BOOST_TEST(lose_again_and_again(200ms) > 5U);
    // Longer than any pause: that was somebody who held the key, not a rival.
    BOOST_TEST(lose_again_and_again(5s) == 1U);
}

BOOST_AUTO_TEST_CASE(a_crowd_of_groups_and_others_gets_done)
{
    for (const auto kind : {behind::memory, behind::immediate, behind::scripted}) {
        rig on(kind);
        std::size_t done = 0;
        const auto key = [](int n) { return "k" + std::to_string(n % 3); };
        const auto work = [&](int self) -> asio::awaitable<void> {
            for (int n = 0; n < 20; ++n) {
                if ((self + n) % 3 != 0) {
                    const auto held = co_await on.locker->acquire(key(self * n));
                    if (n % 2)
                        co_await asio::post(asio::deferred);
                } else {
                    const auto held = co_await on.locker->acquire_all({key(0), key(1), key(2)});
                    co_await asio::post(asio::deferred);
                }
            }
            ++done;
        };
        constexpr std::size_t crowd = 19;
        std::vector<running<void>> all;
        for (std::size_t n = 0; n < crowd; ++n)
            all.push_back(on.start(work(static_cast<int>(n))));
        for (int n = 0; n < 50'000 && done < crowd; ++n)
            on.advance(100us);
        BOOST_TEST(done == crowd);
        BOOST_TEST(on.locker->stats().attempts < 20'000U);
        on.check_clean();
    }
}

/// Where all that they ask is done one after the other, the next of them is always due: each may be in the way of the
/// one before it, for ever.
BOOST_AUTO_TEST_CASE(a_crowd_of_groups_on_a_loop_that_cannot_keep_up_gets_done)
{
    struct crowd
    {
        std::size_t processes;
        bool fifo;
        bool several;
        bool events;
    };
    std::vector<crowd> crowds;
    for (const std::size_t processes : {1U, 3U, 10U}) {
        for (const bool events : {false, true}) {
            for (const auto& [fifo, several] : {std::pair(false, false), {true, false}, {true, true}})
                crowds.push_back({processes, fifo, several, events});
        }
    }
    for (const auto& each : crowds) {
        for (const auto pace : {100us, 200us, 500us, 3000us}) {
            rig on(behind::immediate);
            pretend(on, each.fifo, each.several);
            auto can = on.script->capabilities();
            can.immediate = true;
            can.events = each.events;
            on.script->set_capabilities(can);
            std::vector<std::unique_ptr<neighbour>> lockers;
            for (std::size_t n = 0; n < each.processes; ++n) {
                lockers.push_back(std::make_unique<neighbour>(on, timing::immediate));
                take_time_on_the_loop(*lockers.back()->script, on.io(), pace);
            }
            const acquire_options impatient{.retry = retry_policy::fixed(1ms)};
            constexpr std::size_t turns = 5;
            std::size_t done = 0;
            const auto work = [&](colock::locker by, bool wants_three) -> asio::awaitable<void> {
                for (std::size_t n = 0; n < turns; ++n) {
                    auto keys =
                        wants_three ? std::vector<std::string>{"a", "b", "c"} : std::vector<std::string>{"a", "b"};
                    auto group = co_await by.acquire_all(std::move(keys), impatient);
                    co_await sleep_for(n * 400us);
                    co_await group.release();
                    if (n % 2 == 0) {
                        const auto one = co_await by.acquire(wants_three ? "a" : "b", impatient);
                        co_await sleep_for(700us);
                    }
                    ++done;
                }
            };
            constexpr std::size_t workers = 10;
            std::vector<running<void>> all;
            for (std::size_t n = 0; n < workers; ++n)
                all.push_back(on.start(work(lockers[n % lockers.size()]->locker, n % 2 == 1)));
            const auto began = lease_clock::now();
            try {
                while (done < turns * workers && lease_clock::now() < began + 2min)
                    on.advance(100us);
            } catch (const stuck& busy) {
                BOOST_TEST_INFO(busy.what());
            }
            std::size_t attempts = 0;
            for (const auto& by : lockers)
                attempts += by->locker.stats().attempts;
            BOOST_TEST_CONTEXT("lockers: " << each.processes << ", fifo: " << each.fifo
                                           << ", in one step: " << each.several << ", events: " << each.events
                                           << ", pace: " << pace / 1us << " us")
            {
                BOOST_TEST_REQUIRE(done == turns * workers);
                BOOST_TEST(attempts < 5000U);
            }
            on.wind_down();
            on.check_clean();
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
