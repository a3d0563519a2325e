// Copyright the colock authors. Distributed under the Boost Software License, Version 1.0.
#include "support/set_capabilities.hpp"
#include "support/virtual_fixture.hpp"
#include "usual_options.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <map>
#include <vector>

using namespace colock;
using namespace colock::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(queues)

namespace {

/// Records the order in which waiters get the lock.
struct grant_order
{
    virtual_fixture& env;
    std::vector<int> order;
    std::map<int, lock> held;

    void join(int number, acquire_options options = {})
    {
        env.locker->async_acquire("k", std::move(options), [this, number](error_code code, lock granted) {
            BOOST_TEST(!code, code.message());
            order.push_back(number);
            held[number] = std::move(granted);
        });
        env.ready();
    }
    void leave(int number)
    {
        held.erase(number);
        env.ready();
    }
};

} // namespace

BOOST_AUTO_TEST_CASE(cancelling_readers_and_writers_takes_no_longer_than_cancelling_writers)
{
    constexpr std::size_t count = 10'000;
    const auto cancel_all = [](std::size_t readers, bool newest_first) {
        virtual_fixture env;
        colock::locker other_locker(env.memory);
        const auto held = env.run(other_locker.acquire("k", endless));
        std::vector<asio::cancellation_signal> stop(2 * count);
        std::size_t ended = 0;
        for (std::size_t n = 0; n < stop.size(); ++n) {
            env.locker->async_acquire("k", {.mode = n < readers ? lock_mode::shared : lock_mode::exclusive},
                asio::bind_cancellation_slot(stop[n].slot(), [&ended](error_code, lock) { ++ended; }));
        }
        env.ready();
        BOOST_TEST(env.locker->stats().waiting == 2 * count);
        // The CPU time of this program, because other programs may be running.
        const std::clock_t start = std::clock();
        for (std::size_t n = 0; n < stop.size(); ++n)
            stop[newest_first ? stop.size() - 1 - n : n].emit(asio::cancellation_type::terminal);
        env.ready();
        BOOST_TEST(ended == 2 * count);
        return std::chrono::milliseconds((std::clock() - start) / (CLOCKS_PER_SEC / 1000));
    };
    for (const bool newest_first : {true, false}) {
        auto writers = cancel_all(0, newest_first);
        auto both = cancel_all(count, newest_first);
        // The shortest of three measurements counts.
        for (int n = 0; n < 2; ++n) {
            writers = std::min(writers, cancel_all(0, newest_first));
            both = std::min(both, cancel_all(count, newest_first));
        }
        BOOST_TEST((both < 4 * writers), (newest_first ? "newest first: " : "oldest first: ")
                                             << both.count() << " ms, writers alone " << writers.count() << " ms");
    }
}

BOOST_AUTO_TEST_CASE(readers_behind_a_writer_that_leaves_join_those_in_front)
{
    virtual_fixture env(backend_kind::scripted);
    colock::locker other_locker(env.memory);
    auto held = env.run(other_locker.acquire("k", endless));
    grant_order waiters{env, {}, {}};
    waiters.join(1, shared);
    waiters.join(2, shared);
    asio::cancellation_signal first, second;
    env.locker->async_acquire("k", asio::bind_cancellation_slot(first.slot(), [](error_code, lock) {}));
    waiters.join(3, shared);
    env.locker->async_acquire("k", asio::bind_cancellation_slot(second.slot(), [](error_code, lock) {}));
    waiters.join(4, shared);
    // The later writer leaves first. The earlier writer is still in front of the readers 3 and 4.
    second.emit(asio::cancellation_type::terminal);
    env.ready();
    BOOST_TEST(env.script->count(operation::create) == 2U);
    first.emit(asio::cancellation_type::terminal);
    env.ready();
    BOOST_TEST(env.script->count(operation::create) == 4U);
    held = {};
    env.ready();
    BOOST_TEST((waiters.order == std::vector{1, 2, 3, 4}));
    waiters.held.clear();
    env.check_clean();
}

BOOST_AUTO_TEST_CASE(a_local_release_wakes_a_head_whose_attempt_was_under_way)
{
    virtual_fixture env(backend_kind::scripted);
    disable(env, {&capabilities::events});
    auto held = env.acquire("k");
    env.script->next(operation::create, step::busy());
    env.script->next(operation::create, step::hold());
    auto waiting = env.start(env.locker->acquire("k", {.retry = retry_policy::fixed(10s).jitter(0)}));
    env.advance(11s);
    BOOST_TEST_REQUIRE(env.script->held_count() == 1U);
    // The second attempt finds the holder, which releases before the answer arrives.
    env.script->next(operation::create, step::pass());
    env.script->deliver();
    held = {};
    env.ready();
    env.advance(100ms);
    BOOST_TEST(waiting.done());
    if (waiting.done())
        static_cast<void>(waiting.get(env.io()));
}

BOOST_AUTO_TEST_CASE(total_time_is_absolute_and_wake_ups_are_no_attempts)
{
    virtual_fixture env(backend_kind::scripted);
    env.script->always(operation::create, step::busy());
    env.script->always(operation::wait, step::hold());
    auto waiting =
        env.start(env.locker->acquire("k", {.retry = retry_policy::fixed(1h).jitter(0).times(1).total_time(1min)}));
    for (int second = 0; second < 59; ++second) {
        env.advance(1s);
        BOOST_TEST_REQUIRE(!waiting.done());
        // Wakes the waiter.
        BOOST_TEST(env.script->deliver());
        env.ready();
    }
    BOOST_TEST(env.locker->stats().attempts == 60U);
    BOOST_TEST(env.locker->stats().retries == 0U);
    env.advance(2s);
    const auto thrown = required_error<retry_error>([&] { static_cast<void>(waiting.get(env.io())); });
    BOOST_TEST((thrown.elapsed() >= 1min));
    BOOST_TEST((thrown.elapsed() < 62s));
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(without_events_the_core_polls_by_the_policy_alone)
{
    virtual_fixture env(backend_kind::scripted);
    disable(env, {&capabilities::events, &capabilities::fifo});
    env.script->always(operation::create, step::busy());
    auto waiting = env.start(env.locker->acquire("k", {.retry = retry_policy::fixed(10s).jitter(0).times(3)}));
    env.advance_by_steps(29s, 500ms);
    BOOST_TEST(!waiting.done());
    BOOST_TEST(env.script->count(operation::create) == 3U);
    env.advance_by_steps(2s, 500ms);
    COLOCK_THROWS(retry_error, errc::retry_exhausted, waiting.get(env.io()));
    BOOST_TEST(env.script->count(operation::create) == 4U);
    BOOST_TEST(env.script->count(operation::wait) == 0U);
    BOOST_TEST(env.locker->stats().retries == 3U);
    env.wind_down_and_check();
}

BOOST_AUTO_TEST_CASE(an_immediate_retry_does_not_starve_the_loop)
{
    for (const auto& policy :
        {retry_policy::fixed(0s).jitter(0), retry_policy::custom([](const retry_attempt&) { return 0s; })})
    {
        virtual_fixture env;
        colock::locker other_locker(env.memory);
        auto held = env.run(other_locker.acquire("k", endless));
        env.locker->async_acquire("k", {.retry = policy}, [](error_code, lock) {});
        int others = 0;
        std::function<void()> again = [&] {
            if (++others < 50)
                asio::post(env.io(), again);
            else
                held = {};
        };
        asio::post(env.io(), again);
        env.io().restart();
        for (int handlers = 0; handlers < 2000 && others < 50; ++handlers)
            static_cast<void>(env.io().poll_one());
        BOOST_TEST(others == 50);
        env.ready();
        env.check_clean();
    }
}

BOOST_AUTO_TEST_SUITE_END()
